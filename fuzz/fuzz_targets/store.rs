//! A whole store with its files changed in any way: every event shown is one that was recorded, in its place.
//!
//! Changes are drawn from the bytes: flipped bits, garbled or zeroed stretches, cuts, stretches moved within a file or from
//! another one, files removed or put in the place of others.
#![no_main]

use acpdb_engine::storage::SimWorld;
use acpdb_fuzz::Template;
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Change {
    file: u8,
    offset: u16,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    Flip { bit: u8 },
    Put { bytes: Vec<u8> },
    Zero { length: u16 },
    Cut,
    Append { bytes: Vec<u8> },
    Copy { from_file: u8, from: u16, length: u16 },
    Remove,
    Replace { by: u8 },
}

fn apply(world: &SimWorld, change: &Change) {
    let files = world.files();
    let pick = |number: u8| files.get(usize::from(number) % files.len().max(1)).cloned();
    let Some(name) = pick(change.file) else { return };
    let Some(mut bytes) = world.file(&name) else { return };
    let at = usize::from(change.offset) % (bytes.len() + 1);
    let put = |bytes: &mut Vec<u8>, new: &[u8]| {
        for (slot, byte) in bytes[at..].iter_mut().zip(new) {
            *slot = *byte;
        }
    };
    match &change.what {
        What::Flip { bit } => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (bit % 8);
            }
        }
        What::Put { bytes: new } => put(&mut bytes, new),
        What::Zero { length } => put(&mut bytes, &vec![0; usize::from(*length)]),
        What::Cut => bytes.truncate(at),
        What::Append { bytes: new } => bytes.extend_from_slice(new),
        What::Copy { from_file, from, length } => {
            let Some(source) = pick(*from_file).and_then(|name| world.file(&name)) else { return };
            let start = usize::from(*from) % (source.len() + 1);
            let end = source.len().min(start + usize::from(*length));
            put(&mut bytes, &source[start..end]);
        }
        What::Remove => {
            world.remove_file(&name);
            return;
        }
        What::Replace { by } => {
            let Some(other) = pick(*by).and_then(|name| world.file(&name)) else { return };
            bytes = other;
        }
    }
    world.set_file(&name, bytes);
}

fuzz_target!(|changes: Vec<Change>| {
    let template = Template::get();
    let world = template.world();
    for change in changes.iter().take(16) {
        apply(&world, change);
    }
    template.judge(&world);
});
