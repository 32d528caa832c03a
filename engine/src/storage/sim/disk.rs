//! The simulated disk: names apart from files, and the part of both that a power cut leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chance::Chance;
use super::inode::Inode;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(usize),
}

/// A change of a directory that is not durable yet.
#[derive(Clone)]
enum Naming {
    Set(String, Node),
    Gone(String),
    Moved(String, String, Node),
    /// Two names, each with the file that it has now.
    Exchanged(String, Node, String, Node),
}

#[derive(Clone, Default)]
pub(super) struct Disk {
    inodes: Vec<Arc<Inode>>,
    pub(super) names: BTreeMap<String, Node>,
    durable_names: BTreeMap<String, Node>,
    pending_names: Vec<Naming>,
    /// The store's own directory was made and its name is not durable: a power cut may take all of it.
    root_is_pending: bool,
    pub(super) root_exists: bool,
    pub(super) chance: Chance,
    /// Rises whenever bytes or names become different.
    pub(super) change_count: u64,
}

pub(super) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

impl Disk {
    pub(super) fn inode(&self, inode: usize) -> Option<&Inode> {
        self.inodes.get(inode).map(|inode| &**inode)
    }

    /// For changes that processes cannot see, such as becoming durable.
    pub(super) fn inode_mut(&mut self, inode: usize) -> Option<&mut Inode> {
        self.inodes.get_mut(inode).map(Arc::make_mut)
    }

    pub(super) fn named(&self, name: &str) -> Option<usize> {
        match self.names.get(name) {
            Some(Node::File(inode)) => Some(*inode),
            _ => None,
        }
    }

    pub(super) fn write(&mut self, inode: usize, offset: usize, bytes: &[u8]) {
        let differs = self.inode_mut(inode).is_some_and(|inode| inode.write(offset, bytes));
        self.change_count += u64::from(differs);
    }

    pub(super) fn resize(&mut self, inode: usize, length: usize) {
        let differs = self.inode_mut(inode).is_some_and(|inode| inode.resize(length));
        self.change_count += u64::from(differs);
    }

    /// A write-back that fails: part of it is lost, all of it counts as clean.
    pub(super) fn fail_write_back(&mut self, inode: usize, seen: bool) {
        if let Some(inode) = self.inodes.get_mut(inode) {
            Arc::make_mut(inode).fail_write_back(seen, &mut self.chance);
        }
    }

    pub(super) fn has_directory(&self, name: &str) -> bool {
        name.is_empty() || self.names.get(name) == Some(&Node::Directory)
    }

    pub(super) fn make_file(&mut self, name: &str) -> usize {
        let inode = self.inodes.len();
        self.inodes.push(Arc::default());
        self.set_name(name, Node::File(inode));
        inode
    }

    pub(super) fn make_directory(&mut self, name: &str) {
        if name.is_empty() {
            self.root_is_pending |= !self.root_exists;
            self.root_exists = true;
        } else if !self.names.contains_key(name) {
            self.set_name(name, Node::Directory);
        }
    }

    fn set_name(&mut self, name: &str, node: Node) {
        self.change_count += 1;
        self.names.insert(name.to_owned(), node);
        self.pending_names.push(Naming::Set(name.to_owned(), node));
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(node) = self.names.remove(from) else { return false };
        self.change_count += 1;
        self.names.insert(to.to_owned(), node);
        self.pending_names.push(Naming::Moved(from.to_owned(), to.to_owned(), node));
        true
    }

    pub(super) fn exchange(&mut self, left: &str, right: &str) -> bool {
        let (Some(first), Some(second)) = (self.names.get(left).copied(), self.names.get(right).copied())
        else {
            return false;
        };
        self.change_count += 1;
        self.names.insert(left.to_owned(), second);
        self.names.insert(right.to_owned(), first);
        self.pending_names.push(Naming::Exchanged(left.to_owned(), second, right.to_owned(), first));
        true
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let was_there = self.names.remove(name).is_some();
        if was_there {
            self.change_count += 1;
            self.pending_names.push(Naming::Gone(name.to_owned()));
        }
        was_there
    }

    pub(super) fn sync_names(&mut self, directory: &str) {
        if directory == ".." {
            self.root_is_pending = false;
            return;
        }
        let (synced, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending_names).into_iter().partition(|naming| match naming {
                Naming::Set(name, _)
                | Naming::Gone(name)
                | Naming::Moved(_, name, _)
                | Naming::Exchanged(_, _, name, _) => parent(name) == directory,
            });
        self.pending_names = rest;
        for naming in &synced {
            self.make_durable(naming);
        }
    }

    fn make_durable(&mut self, naming: &Naming) {
        match naming {
            Naming::Set(name, node) => drop(self.durable_names.insert(name.clone(), *node)),
            Naming::Gone(name) => drop(self.durable_names.remove(name)),
            Naming::Moved(from, to, node) => {
                if self.durable_names.get(from) == Some(node) {
                    self.durable_names.remove(from);
                }
                self.durable_names.insert(to.clone(), *node);
            }
            Naming::Exchanged(left, first, right, second) => {
                self.durable_names.insert(left.clone(), *first);
                self.durable_names.insert(right.clone(), *second);
            }
        }
    }

    pub(super) fn cut_power(&mut self) {
        self.change_count += 1;
        for inode in &mut self.inodes {
            Arc::make_mut(inode).cut_power(&mut self.chance);
        }
        // All of them, a part from the start on (journals keep their order), any mix, or none.
        let pending = std::mem::take(&mut self.pending_names);
        let mood = self.chance.below(4);
        let cut = self.chance.below(pending.len() + 1);
        for (index, naming) in pending.iter().enumerate() {
            if match mood {
                0 => true,
                1 => index < cut,
                2 => self.chance.one_in(2),
                _ => false,
            } {
                self.make_durable(naming);
            }
        }
        if std::mem::take(&mut self.root_is_pending) && self.chance.one_in(3) {
            self.durable_names.clear();
            self.root_exists = false;
        }
        // A name is reachable only if its directory is.
        let durable = self.durable_names.clone();
        self.durable_names.retain(|name, _| {
            let directory = parent(name);
            directory.is_empty() || durable.contains_key(directory)
        });
        self.names.clone_from(&self.durable_names);
    }

    /// Puts other bytes into a file, durably, or makes it: damage.
    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) {
        self.change_count += 1;
        let inode = Arc::new(Inode::settled(bytes));
        if let Some(place) = self.named(name).and_then(|inode| self.inodes.get_mut(inode)) {
            *place = inode;
        } else {
            let node = Node::File(self.inodes.len());
            self.inodes.push(inode);
            self.names.insert(name.to_owned(), node);
            self.durable_names.insert(name.to_owned(), node);
        }
    }

    /// Takes a name away, durably.
    pub(super) fn lose(&mut self, name: &str) {
        self.change_count += 1;
        self.names.remove(name);
        self.durable_names.remove(name);
    }
}
