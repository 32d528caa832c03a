//! Bodies of sealed segments, packed one by one.
//!
//! Codec 1 is zstd with the dictionary that ships with the program. The dictionary is made from invented material (see
//! `bench/examples/dictionary.rs`): one trained on a store's own bodies would hold copies of them where no erasure reaches. A
//! body is packed alone, so it can be read alone and zeroed alone.
//!
//! Unpacking trusts nothing: the length is known before, at most a body's limit and at most [`RATIO_MAX`] times the
//! stored length, and no more memory than that is ever taken.

use std::cell::RefCell;
use std::sync::OnceLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::CParameter;

use super::STORED_BYTES_MAX;

/// Stored as it is.
pub(crate) const CODEC_NONE: u8 = 0;
/// zstd with dictionary 1.
pub(crate) const CODEC_ZSTD_1: u8 = 1;

/// The dictionary of codec 1. It never changes: another one is another codec.
pub const DICTIONARY_1: &[u8] = include_bytes!("dictionary-1.bin");
/// BLAKE3 of [`DICTIONARY_1`], as `docs/FORMAT.md` names it.
pub const DICTIONARY_1_DIGEST: &str = "184bdb247534632837c0656c392ca0904412b439f520c49fcd8fd4d939600f44";

/// A body is at most this many times as long as its stored bytes.
pub(crate) const RATIO_MAX: u64 = 1000;
/// Bodies that are packed while their recording waits: a quarter of the time, 4 % more bytes.
const RECORD_LEVEL: i32 = 3;
/// Begins a zstd frame without content; its length follows.
const SKIPPABLE_MAGIC: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();

fn record_encoder() -> &'static EncoderDictionary<'static> {
    static DICTIONARY: OnceLock<EncoderDictionary<'static>> = OnceLock::new();
    DICTIONARY.get_or_init(|| EncoderDictionary::copy(DICTIONARY_1, RECORD_LEVEL))
}

fn decoder() -> &'static DecoderDictionary<'static> {
    static DICTIONARY: OnceLock<DecoderDictionary<'static>> = OnceLock::new();
    DICTIONARY.get_or_init(|| DecoderDictionary::copy(DICTIONARY_1))
}

thread_local! {
    /// A context is 160 KB: made once a thread, not once a body.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    /// A thread that records a body waits for its packing.
    static RECORD_PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
}

/// As [`Packer::pack`], for a body that is recorded now.
pub(crate) fn pack_to_record(body: &[u8]) -> (u8, Option<Vec<u8>>) {
    RECORD_PACKER
        .with_borrow_mut(|kept| kept.get_or_insert_with(|| Packer::with(record_encoder())).pack(body))
}

/// Packs bodies; keeps the compressor for the next body.
pub(crate) struct Packer {
    compressor: Option<Compressor<'static>>,
}

impl Packer {
    fn with(dictionary: &'static EncoderDictionary<'static>) -> Self {
        let compressor = || {
            // Without a compressor bodies are stored as they are, here and below.
            let mut compressor = Compressor::with_prepared_dictionary(dictionary).ok()?;
            // The row that leads to the bytes already says both.
            compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
            // As above.
            compressor.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
            Some(compressor)
        };
        Self { compressor: compressor() }
    }

    /// How to store a body: the codec and its bytes, or [`CODEC_NONE`] and nothing if packing does not make it shorter.
    pub(crate) fn pack(&mut self, body: &[u8]) -> (u8, Option<Vec<u8>>) {
        // A body that cannot be packed is stored as it is.
        let packed = self.compressor.as_mut().and_then(|compressor| compressor.compress(body).ok());
        let Some(mut packed) = packed else { return (CODEC_NONE, None) };
        let least = usize::try_from((body.len() as u64).div_ceil(RATIO_MAX)).unwrap_or(usize::MAX);
        if packed.len() < least {
            // Packed too well to be told from an attack: an empty frame is added.
            let filler = least - packed.len();
            packed.extend_from_slice(&SKIPPABLE_MAGIC);
            packed.extend_from_slice(&u32::try_from(filler).unwrap_or(0).to_le_bytes());
            packed.resize(packed.len().saturating_add(filler), 0);
        }
        if packed.len() < body.len() { (CODEC_ZSTD_1, Some(packed)) } else { (CODEC_NONE, None) }
    }
}

/// The body of `bytes` length that was stored as `stored`; an error tells the reason in words.
pub(crate) fn unpack(codec: u8, stored: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
    if bytes > STORED_BYTES_MAX {
        return Err(format!("a body of {bytes} bytes"));
    }
    match codec {
        CODEC_NONE if stored.len() == bytes => Ok(stored.to_vec()),
        CODEC_NONE => Err(format!("{} bytes instead of {bytes}", stored.len())),
        CODEC_ZSTD_1 => {
            if bytes as u64 > (stored.len() as u64).saturating_mul(RATIO_MAX) {
                return Err(format!("{bytes} bytes packed into {}", stored.len()));
            }
            let unpacked = DECOMPRESSOR.with_borrow_mut(|kept| {
                if kept.is_none() {
                    // Without a decompressor nothing is unpacked, and the body is reported as damaged.
                    *kept = Decompressor::with_prepared_dictionary(decoder()).ok();
                }
                let decompressor = kept.as_mut()?;
                let mut out = Vec::with_capacity(bytes);
                // The caller reports bytes that do not unpack.
                decompressor.decompress_to_buffer(stored, &mut out).ok()?;
                Some(out)
            });
            match unpacked {
                Some(out) if out.len() == bytes => Ok(out),
                Some(out) => Err(format!("{} bytes instead of {bytes}", out.len())),
                None => Err("bytes that cannot be unpacked".to_owned()),
            }
        }
        other => Err(format!("codec {other}, which this program does not know")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_of_codec_1_never_changes() {
        assert_eq!(blake3::hash(DICTIONARY_1).to_hex().as_str(), DICTIONARY_1_DIGEST);
    }

    #[test]
    fn what_is_packed_comes_back_and_never_too_well_packed() {
        let long = "the same line again\n".repeat(50_000).into_bytes();
        let bodies: Vec<Vec<u8>> = vec![
            b"x".to_vec(),
            b"{\"filePath\":\"/home/dev/app/src/main.rs\"}".to_vec(),
            long,
            vec![0; STORED_BYTES_MAX],
        ];
        for body in &bodies {
            let (codec, packed) = pack_to_record(body);
            let stored = packed.as_deref().unwrap_or(body);
            assert!(stored.len() as u64 * RATIO_MAX >= body.len() as u64);
            assert!(stored.len() <= body.len());
            assert_eq!(unpack(codec, stored, body.len()).unwrap(), *body);
            if codec == CODEC_ZSTD_1 {
                assert!(unpack(codec, stored, body.len() + 1).is_err());
                assert!(unpack(codec, stored, body.len() - 1).is_err());
                assert!(unpack(codec, &stored[..stored.len() / 2], body.len()).is_err());
            }
        }
    }

    #[test]
    fn a_claim_beyond_the_limits_is_refused_before_memory_is_taken() {
        for (bytes, said) in [(STORED_BYTES_MAX + 1, "a body of"), (1001, "packed into 1")] {
            assert!(unpack(CODEC_ZSTD_1, b"x", bytes).unwrap_err().contains(said));
        }
        assert!(unpack(9, b"x", 1).unwrap_err().contains("codec 9"));
    }
}
