//! A store whose only segment is any bytes: it opens and is read, or is refused; nothing panics or goes on for ever.
//!
//! The first byte chooses how much of the real segment stays before the bytes: nothing, its header, its first frame or
//! half.
//! There is no tail page and no checkpoint, so recovery has to find the end by itself.
#![no_main]

use acpdb_fuzz::Template;
use libfuzzer_sys::fuzz_target;

const SEGMENT: &str = "log/000000000001.seg";

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let template = Template::get();
    let world = template.world();
    let real = world.file(SEGMENT).expect("the template has a segment");
    let keep = [0, 256, 512, 2048, real.len() / 2][usize::from(*choice) % 5].min(real.len());
    let mut bytes = real[..keep].to_vec();
    bytes.extend_from_slice(rest);
    for name in world.files() {
        if name == "tail" || name == "checkpoint" || (name.ends_with(".seg") && name != SEGMENT) {
            world.remove_file(&name);
        }
    }
    world.set_file(SEGMENT, bytes);
    template.judge(&world);
});
