//! The cost of sessions, in dollars.
//!
//! ```text
//! log --requests--> Request (model, tokens, time), each once --bill(by)--> rows and a total
//!                       |                    PriceTable (dated) --^
//!                       '--waste--> what of it went to stale items, and what other ways would have cost
//! ```
//!
//! A request is a provider's report with the end of a message. Copies of it, which hosts write when they resume or fork a session,
//! count once. Requests that no table prices are named and counted, and add nothing to any sum.

mod bill;
mod changes;
mod request;
mod requests;
mod table;
pub(crate) mod told;
mod wanted;
mod waste;

pub use bill::{Bill, BillFilter, By, CostRow, Tokens, Unpriced, bill};
pub use changes::{PriceChange, changes};
pub use request::BilledRequest;
pub use requests::{Requests, StoreRequests, requests, store_requests};
pub use table::{BUILT_IN, Dollars, ModelPrice, PriceTable, RequestLengths, TableError};
pub(crate) use table::{Pricing, float};
pub use wanted::{is_of_requests, settled};
pub use waste::{Reported, ServingPolicy, WASTE_WAYS, Waste, prices_of, reported, stale, waste};

#[cfg(test)]
mod tests;
