//! The file systems that a store is not put on unless its owner insists.
//!
//! A store relies on three things of a file system: a lock that all processes see, a sync after which bytes stay, and
//! reads that give the bytes which another process wrote before. File systems over a network give some of them on some servers with
//! some mount options; for file systems in user space it depends on their program. Neither can be found out by trying, so they are
//! refused by name: by the number that the kernel has for them, and by the name under which they are mounted. Linux and
//! macOS tell the file system of a folder; elsewhere nothing is refused. An unknown file system counts as
//! a local one.
//!
//! Not here: finding network disks below a local file system (such disks keep their promises), or looking again
//! after the store was opened.

use std::io;
use std::path::Path;

/// The name of the file system that `path` is on, or is going to be on, if it is one that a store cannot trust.
///
/// A path that does not exist yet stands for the nearest folder above that does.
///
/// # Errors
/// If the path cannot be made absolute.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn untrusted(path: &Path) -> io::Result<Option<String>> {
    let whole = std::path::absolute(path)?;
    for place in whole.ancestors() {
        match rustix::fs::statfs(place) {
            Ok(found) => return Ok(judge(place, &found)),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            // Not allowed, or not to be known: opening will report the error, if there is one.
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Unknown; no question is asked.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
#[expect(clippy::unnecessary_wraps, reason = "the signature of the other one")]
pub fn untrusted(_path: &Path) -> io::Result<Option<String>> {
    Ok(None)
}

#[cfg(target_os = "linux")]
fn judge(place: &Path, found: &rustix::fs::StatFs) -> Option<String> {
    // Its width and sign depend on the machine; all numbers of file systems have 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits of it count")]
    #[allow(clippy::unnecessary_cast, trivial_numeric_casts, reason = "the type depends on the machine")]
    let magic = found.f_type as u32;
    if is_local(magic) {
        return None;
    }
    // The kernel has one number for all file systems in user space, virtiofs among them.
    let mounted = mounted_as(place);
    mounted.as_deref().and_then(of_type).or_else(|| of_number(magic).map(str::to_owned))
}

#[cfg(target_os = "macos")]
fn judge(_place: &Path, found: &rustix::fs::StatFs) -> Option<String> {
    let bytes = found.f_fstypename.iter().map(|byte| byte.cast_unsigned());
    let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    of_type(&String::from_utf8_lossy(&name))
}

/// The usual ones, for which the list of mounts is not read.
#[cfg(any(target_os = "linux", test))]
fn is_local(magic: u32) -> bool {
    // ext4, xfs, btrfs, zfs, tmpfs, overlay, f2fs, bcachefs
    const LOCAL: [u32; 8] = [
        0x0000_ef53,
        0x5846_5342,
        0x9123_683e,
        0x2fc1_2fc1,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0xca45_1a4e,
    ];
    LOCAL.contains(&magic)
}

/// The type of the file system that is mounted at `place`, as `/proc/self/mountinfo` names it (`proc_pid_mountinfo(5)`).
#[cfg(target_os = "linux")]
fn mounted_as(place: &Path) -> Option<String> {
    // A type that cannot be asked for is unknown, and the magic number alone decides.
    let device = rustix::fs::stat(place).ok()?.st_dev;
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // As above.
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    type_of_device(&table, &device)
}

/// The type that a table of mounts has for a device.
#[cfg(any(target_os = "linux", test))]
fn type_of_device(table: &str, device: &str) -> Option<String> {
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let (_, behind) = line.split_once(" - ")?;
    behind.split(' ').next().map(str::to_owned)
}

/// Numbers from statfs(2), the kernel's `linux/magic.h` and `linux/gfs2_ondisk.h`; numbers of file systems outside the kernel
/// from their sources, and as `stat -f` of coreutils has them.
#[cfg(any(target_os = "linux", test))]
fn of_number(magic: u32) -> Option<&'static str> {
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
        0x7461_636f => "OCFS2",
        0x0116_1970 => "GFS2",
        0x1983_0326 => "BeeGFS",
        0x2003_0528 => "OrangeFS",
        0xaad7_aaea => "PanFS",
        0xbeef_dead => "StorNext",
        0x6163_6673 => "ACFS",
        0x0131_11a8 => "Ibrix",
        0x7c7c_6673 => "a Parallels share",
        0x786f_4256 => "a VirtualBox share",
        0xbacb_acbc => "a VMware share",
        0x5346_4846 => "a WSL share",
        _ => return None,
    };
    Some(name)
}

/// The same by the name of a type, as Linux mounts it and macOS tells it in `f_fstypename`. One in user space goes by its
/// own name.
fn of_type(name: &str) -> Option<String> {
    let known = match name {
        "nfs" | "nfs4" => "NFS",
        "cifs" | "smb" | "smb2" | "smb3" | "smbfs" => "SMB",
        "afpfs" => "AFP",
        "webdav" | "davfs" => "WebDAV",
        "fuse" | "fuseblk" | "macfuse" | "osxfuse" => "FUSE",
        "virtiofs" | "AppleVirtIOFS" => "virtiofs",
        "9p" => "9p",
        "afs" | "kafs" | "openafs" => "AFS",
        "coda" => "Coda",
        "ncpfs" => "NCP",
        "ceph" => "Ceph",
        "lustre" => "Lustre",
        "gpfs" => "GPFS",
        "ocfs2" => "OCFS2",
        "gfs" | "gfs2" => "GFS2",
        "beegfs" | "fhgfs" => "BeeGFS",
        "pvfs2" | "orangefs" => "OrangeFS",
        "panfs" => "PanFS",
        "cvfs" | "acfs" | "wekafs" | "quobyte" | "glusterfs" | "lifs" | "ftp" => name,
        "prl_fs" | "prl_fs_freeze" => "a Parallels share",
        "vboxsf" => "a VirtualBox share",
        "vmhgfs" => "a VMware share",
        "drvfs" | "wslfs" => "a WSL share",
        _ => return name.strip_prefix("fuse.").map(|own| format!("FUSE ({own})")),
    };
    Some(known.to_owned())
}

/// The number of the user in whose name this process opens files.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Bytes that this user can still write to the file system of `path`. `None` where that cannot be known.
pub fn free_bytes(path: &Path) -> Option<u64> {
    // `None` says that it is unknown.
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
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
            (0x7461_636f, Some("OCFS2")),
            (0x0116_1970, Some("GFS2")),
            (0x1983_0326, Some("BeeGFS")),
            (0x0bd0_0bd0, Some("Lustre")),
            (0x4750_4653, Some("GPFS")),
            // ext4, xfs, btrfs, zfs, tmpfs, overlay, f2fs, bcachefs, and unknown ones
            (0xef53, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x2fc1_2fc1, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
            (0xf2f5_2010, None),
            (0xca45_1a4e, None),
            (0x1234_5678, None),
        ] {
            assert_eq!(of_number(magic), name, "{magic:#x}");
            assert!(name.is_none() || !is_local(magic), "{magic:#x}");
        }
    }

    /// One number stands for all file systems in user space, so a store on virtiofs was refused as one on FUSE, and one that
    /// several machines share under a number of its own was not refused. They go by the names they are mounted under now.
    #[test]
    fn shared_file_systems_go_by_their_own_names() {
        for (name, said) in [
            ("virtiofs", Some("virtiofs")),
            ("fuse.sshfs", Some("FUSE (sshfs)")),
            ("fuseblk", Some("FUSE")),
            ("beegfs", Some("BeeGFS")),
            ("ocfs2", Some("OCFS2")),
            ("nfs4", Some("NFS")),
            ("smbfs", Some("SMB")),
            ("cvfs", Some("cvfs")),
            ("ext4", None),
            ("apfs", None),
            ("hfs", None),
            ("tmpfs", None),
        ] {
            assert_eq!(of_type(name).as_deref(), said, "{name}");
        }
        let table = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
             40 22 0:35 / /mnt/my\\040share rw,relatime - fuse.sshfs host:/ rw,user_id=0\n\
             41 22 0:36 / /host rw,relatime shared:9 master:2 - virtiofs tag rw\n";
        assert_eq!(type_of_device(table, "8:1").as_deref(), Some("ext4"));
        assert_eq!(type_of_device(table, "0:35").as_deref(), Some("fuse.sshfs"));
        assert_eq!(type_of_device(table, "0:36").as_deref(), Some("virtiofs"));
        assert_eq!(type_of_device(table, "0:3"), None);
        assert_eq!(type_of_device("no table", "0:3"), None);
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
