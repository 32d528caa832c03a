//! Which file systems a store is not put on unless its owner insists.
//!
//! A store relies on three things of a file system: a lock that all processes see, a sync after which bytes stay, and
//! that what one process wrote is what the next one reads. File systems over a network give some of them on some servers with some mount
//! options; file systems in user space give what their program gives. Neither can be found out by trying, so they are
//! refused by name. Only Linux says which file system it is; elsewhere nothing is refused.
//!
//! What this does not do: find network disks below a local file system (those keep their promises), or look again
//! after the store was opened.

use std::io;
use std::path::Path;

/// The name of the file system that `path` is on, or is going to be on, if it is one that a store cannot trust.
///
/// A path that does not exist yet stands for the nearest folder above that does.
///
/// # Errors
/// If the path cannot be made absolute.
#[cfg(target_os = "linux")]
pub fn untrusted(path: &Path) -> io::Result<Option<&'static str>> {
    let whole = std::path::absolute(path)?;
    for place in whole.ancestors() {
        match rustix::fs::statfs(place) {
            Ok(found) => {
                // Its width and sign depend on the machine; all numbers of file systems have 32 bits.
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "32 bits of it count"
                )]
                #[allow(
                    clippy::unnecessary_cast,
                    trivial_numeric_casts,
                    reason = "the type depends on the machine"
                )]
                let magic = found.f_type as u32;
                return Ok(name_of(magic));
            }
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            // Not allowed, or not to be known: opening will say what is wrong, if anything is.
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Only Linux is asked.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the signature of the other one")]
pub fn untrusted(_path: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

/// Numbers from statfs(2) and the kernel's `linux/magic.h`; those of file systems outside the kernel from their sources.
#[cfg(any(target_os = "linux", test))]
fn name_of(magic: u32) -> Option<&'static str> {
    let name = match magic {
        0x0000_6969 => "NFS",
        0x0000_517b | 0xfe53_4d42 | 0xff53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9p",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0000_564c => "NCP",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x786f_4256 => "a VirtualBox share",
        0xbacb_acbc => "a VMware share",
        _ => return None,
    };
    Some(name)
}

/// Bytes that this user can still write to the file system of `path`. `None` where that cannot be known.
pub fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(path).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_over_a_network_or_in_user_space_are_told_from_local_ones() {
        for (magic, name) in [
            (0x6969, Some("NFS")),
            (0x6573_5546, Some("FUSE")),
            (0xff53_4d42, Some("SMB")),
            (0x0102_1997, Some("9p")),
            (0x5346_414f, Some("AFS")),
            // ext4, xfs, btrfs, zfs, tmpfs, overlay, f2fs
            (0xef53, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x2fc1_2fc1, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
            (0xf2f5_2010, None),
        ] {
            assert_eq!(name_of(magic), name, "{magic:#x}");
        }
    }

    #[test]
    fn a_folder_that_is_still_to_be_made_is_on_the_file_system_of_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        let above = untrusted(folder.path()).unwrap();
        assert_eq!(untrusted(&folder.path().join("a/b/c")).unwrap(), above);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(untrusted(&file.join("below")).unwrap(), above);
    }
}
