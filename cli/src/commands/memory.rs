use crate::args::{Global, Memory};
use crate::failure::{Code, Failure};
use crate::output::Output;
pub(crate) fn run(_: &Global, _: &Memory, _: &mut Output) -> Result<Code, Failure> { Ok(Code::Ok) }
pub(crate) fn history(_: &Global, _: &str, _: Option<&str>, _: &mut Output) -> Result<Code, Failure> { Ok(Code::Ok) }
