//! The tokens that clients of `acpdb proxy` and `acpdb mcp --http` have to show: files beside the user's settings.
//!
//! ```text
//! --token, $ACPDB_PROXY_TOKEN, $ACPDB_MCP_TOKEN -> all who have it are served, on any address
//! else keys/proxy.token, keys/mcp.token         -> made at the first start, 0600; only programs of this user, on this machine
//! ```

use std::path::PathBuf;

use acpdb_engine::keys::Zeroizing;
use acpdb_live::proxy::access::{ClientAccess, Clients};

use crate::failure::{Code, Failure};
use crate::keys;

/// Digits of a token that is made here.
const DIGIT_COUNT: usize = 32;

/// A token, and the place where people find it.
pub(crate) struct AccessToken {
    pub(crate) access: ClientAccess,
    /// Its file, if it was not given.
    #[cfg_attr(
        not(any(feature = "proxy", feature = "mcp-http")),
        expect(dead_code, reason = "no server tells it")
    )]
    pub(crate) file: Option<PathBuf>,
}

/// The token for a server of this name: the given one, else the kept one, which is made if need be.
pub(crate) fn of(server: &str, given: Option<&str>) -> Result<AccessToken, Failure> {
    if let Some(access) = given.and_then(|token| ClientAccess::new(token, Clients::Any)) {
        return Ok(AccessToken { access, file: None });
    }
    let path = keys::below(&format!("keys/{server}.token"))?;
    let unfit = || {
        let message = format!("{} is no token: {DIGIT_COUNT} hex digits are expected", path.display());
        Failure::new(Code::Failure, message).hint("remove it: the next start makes a new one")
    };
    let text = if let Some(text) = keys::read(&path)? {
        Zeroizing::new(text)
    } else {
        let token = Zeroizing::new(keys::hex(&keys::random::<16>()?));
        let made = keys::write(&path, &format!("{}\n", token.as_str()), true);
        // Another server may have made one meanwhile: it is the one that counts.
        match (made, keys::read(&path)?) {
            (_, Some(kept)) => Zeroizing::new(kept),
            (Err(failure), None) => return Err(failure),
            (Ok(()), None) => token,
        }
    };
    let token = text.trim_end();
    if token.len() != DIGIT_COUNT || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(unfit());
    }
    let access = ClientAccess::new(token, Clients::OfThisUser).ok_or_else(unfit)?;
    Ok(AccessToken { access, file: Some(path) })
}

impl AccessToken {
    /// The token as it is typed in a shell that reads its file, or the word for one that was given.
    #[cfg(any(feature = "proxy", feature = "mcp-http"))]
    pub(crate) fn typed(&self) -> String {
        match &self.file {
            Some(path) => format!("$(cat {})", crate::store_path::quoted(path)),
            None => "TOKEN".to_owned(),
        }
    }
}
