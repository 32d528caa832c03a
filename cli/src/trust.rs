//! The owner of a store, and the stores of others that the user trusts.
//!
//! A user who may make a folder above put there a store that is found upwards: in a folder that all may write to, that is any user.
//! The content of such a store would be read as the user's own, and the user's words would be written into it. So the store has to
//! belong to the user, and no other user may write to it, or it is on the list that `acpdb config trust` keeps.
//!
//! Not here: the content of a store that is the user's own by ownership and still came from a stranger, such as a store in an
//! archive or a clone. Nothing in a store leads out of it; the engine sees to that.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::settings::Settings;

/// Parts of a store that also have to be the user's own, if they are there.
const PARTS: [&str; 3] = ["acpdb.json", "tail", "log"];
/// Write for the group, write for others.
const OTHERS_WRITE: u32 = 0o022;

/// The objection to a store, as the rest of a sentence about its folder; `None` if there is no objection, or no store.
pub(crate) fn objection(folder: &Path) -> Option<String> {
    let user = acpdb_engine::storage::effective_user();
    // Links on the way to the folder are the user's choice; links in it are not followed.
    let found = folder.metadata().ok()?;
    let own = against(found.uid(), found.mode(), user);
    own.or_else(|| {
        // A missing part is no objection. A part that cannot be looked at cannot be read either.
        let parts = PARTS.iter().filter_map(|part| Some((part, folder.join(part).symlink_metadata().ok()?)));
        let mut parts = parts.filter(|(_, found)| !found.is_symlink());
        parts.find_map(|(part, found)| {
            let against = against(found.uid(), found.mode(), user)?;
            Some(format!("holds {part}, which {against}"))
        })
    })
}

/// The objection to a file or folder of this owner and mode.
fn against(owner: u32, mode: u32, user: u32) -> Option<String> {
    if owner != user {
        return Some(format!("belongs to user {owner}, not to you (user {user})"));
    }
    let mode = mode & 0o7777;
    (mode & OTHERS_WRITE != 0).then(|| format!("can be written by others than its owner (mode {mode:o})"))
}

/// The objection to a store that the user does not trust.
pub(crate) fn open_objection(settings: &Settings, folder: &Path) -> Option<String> {
    objection(folder).filter(|_| !is_trusted(settings, folder))
}

/// Whether the user trusts this store.
pub(crate) fn is_trusted(settings: &Settings, folder: &Path) -> bool {
    !settings.trusted.is_empty()
        && folder.canonicalize().is_ok_and(|folder| settings.trusted.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a folder that all may write to, a stranger's store was found and used. Now it has to be the user's own, and no other user
    /// may write to it.
    #[test]
    fn a_store_of_another_user_or_open_to_all_is_objected_to() {
        for (owner, mode, user, is_own) in [
            (1000, 0o040_700, 1000, true),
            (1000, 0o040_755, 1000, true),
            (1000, 0o040_775, 1000, false),
            (1000, 0o040_757, 1000, false),
            (1000, 0o041_777, 1000, false),
            (1001, 0o040_700, 1000, false),
            (0, 0o040_755, 1000, false),
            // The machine's owner reading a user's store.
            (1000, 0o040_700, 0, false),
            (0, 0o100_600, 0, true),
            (0, 0o100_660, 0, false),
        ] {
            assert_eq!(against(owner, mode, user).is_none(), is_own, "{owner} {mode:o} {user}");
        }
    }

    #[test]
    fn parts_of_a_store_are_looked_at_and_links_in_it_are_not() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        assert_eq!(objection(&store), None);
        std::fs::create_dir_all(store.join("log")).unwrap();
        let set =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set(&store, 0o700);
        set(&store.join("log"), 0o700);
        assert_eq!(objection(&store), None);
        set(&store.join("log"), 0o770);
        assert!(objection(&store).unwrap().contains("holds log, which can be written by others"));
        set(&store.join("log"), 0o700);
        std::os::unix::fs::symlink("/", store.join("tail")).unwrap();
        assert_eq!(objection(&store), None);
        set(&store, 0o720);
        assert!(objection(&store).unwrap().starts_with("can be written by others"));
    }
}
