//! Makes the stamp of saved folds: a digest of the engine's sources, as their layout and their conclusions depend on any of them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    list(Path::new("src"), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    std::env::var_os("CARGO_PKG_VERSION").hash(&mut hasher);
    for file in files {
        std::fs::read(file)?.hash(&mut hasher);
    }
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-env=SOURCES_STAMP={:016x}", hasher.finish());
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
