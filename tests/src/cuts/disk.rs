//! A disk of its own: a file system in an image, mounted from a loop device, that can lose its power.
//!
//! The cut is the shutdown call of ext4 and xfs without a flush of their log: from that moment nothing reaches the image
//! any more, and bytes that were only in memory are gone once the file system is unmounted. Blocks that were handed to
//! the image stay: a cache inside a disk that is lost, too, is simulated elsewhere (`soak::crash`).

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Bytes of an image. Nothing of it is stored before it is written; xfs wants 300 MiB.
const IMAGE_BYTES: u64 = 320 << 20;

/// Bytes of a file system in memory.
const TMPFS_BYTES: u64 = 8 << 20;

/// `EXT4_IOC_SHUTDOWN`, which is `XFS_IOC_GOINGDOWN`: `_IOR('X', 125, __u32)`; 2 is "do not flush the log". A call of that
/// kind has no safe form in Rust, and `xfs_io` offers it for xfs only.
const CUT: &str = "
import fcntl, os, struct, sys
place = os.open(sys.argv[1], os.O_RDONLY)
print('ready', flush=True)
sys.stdin.readline()
fcntl.ioctl(place, 0x8004587d, struct.pack('I', 2))
print('cut', flush=True)
";

/// Files that a disk is filled with, at most.
const FILLING_COUNT_MAX: u32 = 2000;

/// A file system whose power can be cut, or that is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ext4, in one of its modes.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs, which copies on writing: even an overwrite may need space. Its power is not cut.
    Btrfs,
    /// tmpfs, in memory. Its power is not cut.
    Tmpfs,
}

impl Kind {
    /// Its name, as `mount` knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// Mount options under which a power cut leaves different bytes.
    #[must_use]
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["", ",data=writeback", ",nodelalloc", ",data=journal", ",commit=1"],
            Self::Xfs => &["", ",allocsize=4k"],
            Self::Btrfs | Self::Tmpfs => &[""],
        }
    }
}

/// An image with a file system, mounted or not. Unmounted when dropped.
#[derive(Debug)]
pub struct Disk {
    kind: Kind,
    image: PathBuf,
    place: PathBuf,
    is_mounted: bool,
    options: String,
}

impl Disk {
    /// Makes an image in `folder`.
    ///
    /// # Errors
    /// In words: why there can be none here.
    pub fn new(kind: Kind, folder: &Path) -> Result<Self, String> {
        let (image, place) = (folder.join("image"), folder.join("disk"));
        let file = File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES));
        file.and_then(|()| std::fs::create_dir_all(&place)).map_err(|error| error.to_string())?;
        if kind == Kind::Tmpfs {
            return Ok(Self { kind, image, place, is_mounted: false, options: String::new() });
        }
        let mut mkfs = Command::new(format!("mkfs.{}", kind.name()));
        if kind == Kind::Ext4 {
            // With its tables made at once: nothing but the store writes later.
            mkfs.args(["-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        }
        run(mkfs.arg("-q").arg(&image))?;
        Ok(Self { kind, image, place, is_mounted: false, options: String::new() })
    }

    /// The kind of its file system.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The bytes of the disk itself.
    #[must_use]
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// Where it is mounted.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Mounts it, and replays its log.
    ///
    /// # Errors
    /// In words.
    pub fn mount(&mut self, options: &str) -> Result<(), String> {
        let (name, mut mount) = (self.kind.name(), Command::new("mount"));
        mount.args(["-t", name, "-o"]);
        if self.kind == Kind::Tmpfs {
            mount.arg(format!("size={TMPFS_BYTES}{options}")).arg(name);
        } else {
            mount.arg(format!("loop{options}")).arg(&self.image);
        }
        run(mount.arg(&self.place))?;
        self.is_mounted = true;
        options.clone_into(&mut self.options);
        Ok(())
    }

    /// Fills it to the last byte. The returned folder takes the space; remove it to have the space back.
    ///
    /// # Errors
    /// In words.
    pub fn fill(&self) -> Result<PathBuf, String> {
        let filling = self.place.join("filling");
        std::fs::create_dir_all(&filling).map_err(|error| error.to_string())?;
        let mut number = 0;
        for size in ["100M", "10M", "1M", "100K", "4K"] {
            while number < FILLING_COUNT_MAX {
                number += 1;
                let file = filling.join(number.to_string());
                if run(Command::new("fallocate").args(["-l", size]).arg(&file)).is_err() {
                    let _ = std::fs::remove_file(file);
                    break;
                }
            }
        }
        // Space that is left for small files.
        for more in 0..FILLING_COUNT_MAX {
            if std::fs::write(filling.join(format!("more-{more}")), [1; 4096]).is_err() {
                break;
            }
        }
        Ok(filling)
    }

    /// How it was mounted last.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Unmounts it. No process may be using it any more.
    ///
    /// # Errors
    /// In words.
    pub fn unmount(&mut self) -> Result<(), String> {
        if self.is_mounted {
            run(Command::new("umount").arg(&self.place))?;
            self.is_mounted = false;
        }
        Ok(())
    }

    /// A hand at the switch, so that the moment of the cut is not that of starting something.
    ///
    /// # Errors
    /// In words: without python3 there is none.
    pub fn switch(&self) -> Result<Switch, String> {
        let mut command = Command::new("python3");
        command.args(["-c", CUT]).arg(&self.place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut hand = command.spawn().map_err(|error| format!("python3: {error}"))?;
        let said = hand.stdout.take().ok_or("python3 says nothing")?;
        let mut switch = Switch { hand, said: BufReader::new(said) };
        switch.expect("ready")?;
        Ok(switch)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            // It goes away with the last process that uses it.
            let _ = run(Command::new("umount").arg("-l").arg(&self.place));
        }
    }
}

/// Cuts the power of a disk, once.
#[derive(Debug)]
pub struct Switch {
    hand: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Switch {
    fn expect(&mut self, word: &str) -> Result<(), String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| error.to_string())?;
        if line.trim_end() == word { Ok(()) } else { Err(format!("the power switch says {line:?}")) }
    }

    /// Now.
    ///
    /// # Errors
    /// In words: the file system cannot be shut down.
    pub fn cut(mut self) -> Result<(), String> {
        if let Some(mut ear) = self.hand.stdin.take() {
            ear.write_all(b"now\n").map_err(|error| error.to_string())?;
        }
        self.expect("cut")?;
        self.hand.wait().map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // After a cut there is nothing to end; without one the process waits for a word that will not come.
        let _ = self.hand.kill();
        let _ = self.hand.wait();
    }
}

/// Runs a tool; its words if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{name} cannot be run: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}
