//! One whole frame out of any bytes.

use rkyv::util::AlignedVec;

use super::{DamagedPart, FRAME_HEADER_BYTES, Frame, FrameCheck, FrameHeader, Invalid};
use crate::ids::StoreId;

/// Decodes one whole frame of a store from the start of `bytes` and checks everything, bodies included.
///
/// Takes any bytes: fuzzing calls it.
///
/// # Errors
/// [`Invalid`] names the first fault.
pub fn decode_frame(bytes: &[u8], store: StoreId) -> Result<Frame, Invalid> {
    let header = FrameHeader::decode(bytes, store)?;
    let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (start, end) = (length(header.bodies_start()), length(header.frame_bytes()));
    let (Some(content), Some(bodies)) = (bytes.get(FRAME_HEADER_BYTES..start), bytes.get(start..end)) else {
        let found = format!("{} bytes", bytes.len());
        return Err(Invalid::new(DamagedPart::FrameHeader, 8, format!("{end} bytes"), found));
    };
    let mut aligned = AlignedVec::with_capacity(content.len());
    aligned.extend_from_slice(content);
    let frame = Frame::new(header, aligned, FrameCheck::Digest)?;
    let mut first = None;
    frame.check_bodies(bodies, |_, invalid| first = first.take().or(Some(invalid)));
    first.map_or(Ok(frame), Err)
}
