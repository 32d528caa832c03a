//! One whole frame out of any bytes.

use rkyv::util::AlignedVec;

use super::{FRAME_HEADER_BYTES, Frame, FrameCheck, FrameHeader, Invalid, Part};

/// Decodes one whole frame from the start of `bytes` and checks everything, bodies included.
///
/// Takes any bytes: fuzzing calls it.
///
/// # Errors
/// [`Invalid`] names the first fault.
pub fn decode_frame(bytes: &[u8]) -> Result<Frame, Invalid> {
    let header = FrameHeader::decode(bytes)?;
    let length = usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
    let spine_end = FRAME_HEADER_BYTES + header.spine_bytes as usize;
    let (Some(spine), Some(bodies)) =
        (bytes.get(FRAME_HEADER_BYTES..spine_end), bytes.get(spine_end..length))
    else {
        return Err(Invalid::new(
            Part::FrameHeader,
            8,
            format!("{length} bytes"),
            format!("{} bytes", bytes.len()),
        ));
    };
    let mut aligned = AlignedVec::with_capacity(spine.len());
    aligned.extend_from_slice(spine);
    let frame = Frame::new(header, aligned, FrameCheck::Digest)?;
    let mut first = None;
    frame.check_bodies(bodies, |_, invalid| first = first.take().or(Some(invalid)));
    first.map_or(Ok(frame), Err)
}
