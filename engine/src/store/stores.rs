//! Several stores, read as one.
//!
//! ```text
//! folders -> members, each under a label of its own -> opened when an answer needs one, at most 32 at a time
//!                two members of one id: the shorter is the beginning of the longer? left out : both, and a fork that is told
//! ```
//!
//! Nothing is merged or copied: each row of an answer names the store that it is from, so proofs of each stay valid.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::Error;
use crate::ids::{Seq, StoreId};
use crate::locks::steady;

use super::handle::Store;
use super::identity::{PROJECT_FOLDER, identity_of, is_store};

/// Most stores that are open at a time.
const OPEN_COUNT_MAX: usize = 32;

/// One of several stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreMember {
    /// The name in answers, such as `laptop`: that of the folder, unique among the members, without `:` and spaces.
    pub label: String,
    /// The folder.
    pub root: PathBuf,
    /// The store's id, if its files could be read.
    pub id: Option<StoreId>,
}

/// Two members of one id of which neither is the beginning of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFork {
    /// Their labels.
    pub labels: [String; 2],
    /// The last seq that both have with the same link.
    pub shared: Seq,
}

/// Opens one of the stores to read.
type OpenStore<E> = dyn Fn(&Path) -> Result<Store, E> + Send + Sync;

/// Several stores that are read as one. `E` is the caller's error.
///
/// ```
/// use acpdb_engine::store::{Stores, stores_in};
/// use acpdb_engine::{Error, Store};
///
/// # let folder = tempfile::tempdir()?;
/// # for name in ["laptop", "server"] { Store::builder(folder.path().join(name)).open()?; }
/// let folders = stores_in(folder.path())?;
/// let stores = Stores::new(folders, |folder| Store::builder(folder).read_only().open())?;
/// for (place, member) in stores.members().iter().enumerate() {
///     println!("{}: {}", member.label, stores.get(place)?.head()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stores<E = Error> {
    members: Vec<StoreMember>,
    forks: Vec<StoreFork>,
    copies: Vec<StoreMember>,
    /// Of each member that is left out, the label of the one that holds all of it.
    holders: BTreeMap<String, String>,
    open: Box<OpenStore<E>>,
    /// The store that was used longest ago is first.
    opened: Mutex<VecDeque<(usize, Store)>>,
}

impl<E> std::fmt::Debug for Stores<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stores").field("members", &self.members).finish_non_exhaustive()
    }
}

impl<E: From<Error>> Stores<E> {
    /// Names the stores of these folders. `open` opens one of them to read; nothing is opened yet, but for stores of one id, whose
    /// links are compared.
    ///
    /// # Errors
    /// Those of `open`, if stores of one id cannot be opened.
    pub fn new(
        folders: Vec<PathBuf>,
        open: impl Fn(&Path) -> Result<Store, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        // A folder that cannot be read is told when it is opened.
        let id = |root: &Path| identity_of(root).ok().flatten().map(|identity| identity.store);
        let mut seen = BTreeSet::new();
        let members = folders.into_iter().filter(|root| seen.insert(same(root)));
        let members = members.map(|root| StoreMember { label: name(&root), id: id(&root), root }).collect();
        let open = Box::new(open);
        let mut stores = Self {
            members: labelled(members),
            forks: Vec::new(),
            copies: Vec::new(),
            holders: BTreeMap::new(),
            open,
            opened: Mutex::default(),
        };
        stores.compare()?;
        Ok(stores)
    }

    /// The members, in the order of the folders.
    pub fn members(&self) -> &[StoreMember] {
        &self.members
    }

    /// The members that are left out, since another one holds all of them and more.
    pub fn copies(&self) -> &[StoreMember] {
        &self.copies
    }

    /// Members of one id that went on apart.
    pub fn forks(&self) -> &[StoreFork] {
        &self.forks
    }

    /// The member of a label; of one that is left out, the member that holds all of it.
    pub fn labelled(&self, label: &str) -> Option<usize> {
        let label = self.holders.get(label).map_or(label, String::as_str);
        self.members.iter().position(|member| member.label == label)
    }

    /// The store of a member, opened if it is not open. The one that was used longest ago is let go for it.
    ///
    /// # Errors
    /// Those of the `open` that was given.
    pub fn get(&self, place: usize) -> Result<Store, E> {
        let mut opened = steady(&self.opened);
        if let Some(known) = opened.iter().position(|(known, _)| *known == place) {
            let found = opened.remove(known);
            opened.extend(found.clone());
            if let Some((_, store)) = found {
                return Ok(store);
            }
        }
        drop(opened);
        // Others go on meanwhile. If two open the same store, one of the handles goes with its caller.
        let member = self.members.get(place).ok_or_else(|| Error::NotFound {
            what: "store",
            name: place.to_string(),
            nearest: None,
        })?;
        let store = (self.open)(&member.root)?;
        let mut opened = steady(&self.opened);
        if opened.len() >= OPEN_COUNT_MAX {
            opened.pop_front();
        }
        opened.push_back((place, store.clone()));
        Ok(store)
    }

    /// Lets all stores go.
    pub fn release(&self) {
        steady(&self.opened).clear();
    }

    /// Leaves out members that are the beginning of another one, and finds those that went on apart.
    fn compare(&mut self) -> Result<(), E> {
        let mut by_id: BTreeMap<StoreId, Vec<usize>> = BTreeMap::new();
        for (place, member) in self.members.iter().enumerate() {
            if let Some(id) = member.id {
                by_id.entry(id).or_default().push(place);
            }
        }
        let mut left_out = BTreeSet::new();
        for same in by_id.into_values().filter(|same| same.len() > 1) {
            let mut heads = Vec::new();
            for place in same {
                // One that cannot be read is told when it is asked.
                if let Ok(store) = self.get(place)
                    && let Ok(head) = store.head()
                {
                    heads.push((head, place));
                }
            }
            // The longest first; of equal ones the first.
            heads.sort_by_key(|(head, place)| (std::cmp::Reverse(*head), *place));
            let mut kept: Vec<usize> = Vec::new();
            for (head, place) in heads {
                let mut fork = None;
                let mut holder = None;
                for longer in &kept {
                    // Without a comparison both are shown.
                    let Ok(shared) = shared(&self.get(*longer)?, &self.get(place)?, head) else { continue };
                    holder = holder.or((shared == head).then_some(*longer));
                    fork = fork.max(Some((shared, *longer)));
                }
                let label =
                    |place: usize| self.members.get(place).map(|it| it.label.clone()).unwrap_or_default();
                if let Some(holder) = holder {
                    left_out.insert(place);
                    let (own, holder) = (label(place), label(holder));
                    self.holders.insert(own, holder);
                    continue;
                }
                kept.push(place);
                if let Some((shared, other)) = fork {
                    let labels = [label(other), label(place)];
                    self.forks.push(StoreFork { labels, shared });
                }
            }
        }
        if !left_out.is_empty() {
            // Places move.
            self.release();
            let all = std::mem::take(&mut self.members);
            let (copies, members): (Vec<_>, Vec<_>) =
                all.into_iter().enumerate().partition(|(place, _)| left_out.contains(place));
            self.copies = copies.into_iter().map(|(_, member)| member).collect();
            self.members = members.into_iter().map(|(_, member)| member).collect();
        }
        Ok(())
    }
}

/// The stores in a folder, in order of names: its subfolders that are stores, or projects with a store.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be listed.
pub fn stores_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Io { action: "list", path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let below = entry.map_err(failed)?.path();
        let places = [below.clone(), below.join(PROJECT_FOLDER)];
        found.extend(places.into_iter().find(|place| is_store(place)));
    }
    found.sort();
    Ok(found)
}

/// The last seq at which two stores have the same link; `head` is the end of the shorter one. Cost: some reads for each bisection.
fn shared(one: &Store, other: &Store, head: Seq) -> Result<Seq, Error> {
    let is_same = |seq: Seq| -> Result<bool, Error> {
        let (one, other) = (one.head_place(Some(seq))?, other.head_place(Some(seq))?);
        Ok(one.zip(other).is_some_and(|(one, other)| (one.seq, one.link) == (other.seq, other.link)))
    };
    if head == Seq::ZERO || is_same(head)? {
        return Ok(head);
    }
    let (mut same, mut differs) = (Seq::ZERO, head);
    while differs.get() - same.get() > 1 {
        let middle = Seq(same.get() + (differs.get() - same.get()) / 2);
        if is_same(middle)? {
            same = middle;
        } else {
            differs = middle;
        }
    }
    Ok(same)
}

/// A folder as others may spell it, too.
fn same(root: &Path) -> PathBuf {
    // A folder that is not there is told when it is opened.
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

/// The name of a store's folder: of a project's store that of the project.
fn name(root: &Path) -> String {
    let root = same(root);
    let named = if root.ends_with(PROJECT_FOLDER) { root.parent().unwrap_or(&root) } else { &root };
    // The root of a file system has no name.
    let name = named.file_name().unwrap_or_default().to_string_lossy();
    let plain = |sign: char| if sign.is_alphanumeric() || "._-".contains(sign) { sign } else { '-' };
    let name: String = name.chars().map(plain).collect();
    if name.is_empty() { "store".to_owned() } else { name }
}

/// Members with labels that are unique: equal names get a number, or more of the store's id.
fn labelled(mut members: Vec<StoreMember>) -> Vec<StoreMember> {
    let mut taken = BTreeSet::new();
    for member in &mut members {
        let name = member.label.clone();
        // A store that cannot be read has no id, and gets a number.
        let id: String = member.id.map(|id| id.to_string().chars().take(4).collect()).unwrap_or_default();
        let with_id = (!id.is_empty()).then(|| format!("{name}-{id}"));
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut forms = std::iter::once(name.clone()).chain(with_id).chain(numbered);
        member.label = forms.find(|form| taken.insert(form.clone())).unwrap_or(name);
    }
    members
}

#[cfg(test)]
mod tests {
    use crate::{Entry, Role, StreamInfo};

    use super::*;

    fn say(folder: &Path, texts: &[&str]) {
        let store = Store::builder(folder).any_file_system().open().unwrap();
        for text in texts {
            let entries = vec![Entry::prompt(*text), Entry::message(*text, Role::User, *text)];
            let _ = store.append(&StreamInfo::session("host", "one"), entries).unwrap();
        }
        store.close().unwrap();
    }

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }

    fn read(folders: Vec<PathBuf>) -> Stores {
        Stores::new(folders, |folder| Store::builder(folder).read_only().open()).unwrap()
    }

    fn labels(members: &[StoreMember]) -> Vec<&str> {
        members.iter().map(|member| member.label.as_str()).collect()
    }

    #[test]
    fn a_copy_is_left_out_and_a_fork_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        say(&at("mine"), &["a", "b"]);
        copy(&at("mine"), &at("backup"));
        copy(&at("mine"), &at("fork"));
        let end = Store::builder(at("mine")).read_only().open().unwrap().head().unwrap();
        say(&at("mine"), &["c", "d"]);
        let stores = read(stores_in(folder.path()).unwrap());
        assert_eq!(
            (labels(stores.members()), labels(stores.copies())),
            (vec!["mine"], vec!["backup", "fork"])
        );
        assert_eq!(stores.forks(), []);
        say(&at("fork"), &["e"]);
        let stores = read(stores_in(folder.path()).unwrap());
        assert_eq!(
            (labels(stores.members()), labels(stores.copies())),
            (vec!["fork", "mine"], vec!["backup"])
        );
        let fork = StoreFork { labels: ["mine".to_owned(), "fork".to_owned()], shared: end };
        assert_eq!(stores.forks(), [fork]);
    }

    #[test]
    fn labels_are_those_of_folders_and_unique() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["shop/.acpdb", "a/laptop", "b/laptop", "c/laptop", "my box: 1"] {
            say(&at(name), &["x"]);
        }
        let folders = [
            "shop/.acpdb",
            "shop/../shop/.acpdb",
            "a/laptop",
            "b/laptop",
            "c/laptop",
            "my box: 1",
            "gone/laptop",
        ];
        let stores = read(folders.map(at).to_vec());
        let id = |place: usize| stores.members()[place].id.unwrap().to_string()[..4].to_owned();
        let expected = [
            "shop",
            "laptop",
            &format!("laptop-{}", id(2)),
            &format!("laptop-{}", id(3)),
            "my-box--1",
            "laptop-2",
        ];
        assert_eq!(labels(stores.members()), expected);
        assert!(stores.get(5).is_err() && stores.get(6).is_err());
        assert_eq!(stores.labelled("my-box--1"), Some(4));
        assert_eq!(stores_in(folder.path()).unwrap(), [at("my box: 1"), at("shop/.acpdb")]);
    }

    #[test]
    fn no_more_than_the_limit_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let at = |number: usize| folder.path().join(format!("s{number:02}"));
        let folders: Vec<PathBuf> = (0..OPEN_COUNT_MAX + 2).map(at).collect();
        for folder in &folders {
            say(folder, &["x"]);
        }
        let stores = read(folders);
        for _ in 0..2 {
            for place in 0..stores.members().len() {
                assert!(stores.get(place).unwrap().head().unwrap() > Seq::ZERO);
            }
        }
        let opened = steady(&stores.opened);
        assert_eq!(
            opened.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
            (2..OPEN_COUNT_MAX + 2).collect::<Vec<_>>()
        );
    }
}
