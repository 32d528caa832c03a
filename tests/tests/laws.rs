//! Laws that hold for every session, tried on generated ones. The judges are `acpdb_engine::verify` and a second, naive
//! implementation of the rules.

mod laws {
    mod differential;
    mod fold;
    mod imports;
    mod store;
}
