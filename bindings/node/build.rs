//! Tells the linker that Node has the symbols.

fn main() {
    napi_build::setup();
}
