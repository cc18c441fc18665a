//! A byte trie with whole labels on its edges: finds all stored prefixes of a subject in one walk.
//!
//! [`Topics`](super::Topics) has a trie only while its topics have many different lengths. The trie
//! stores numbers (the slots of the topics). Its memory is proportional to the topics, even for
//! long ones, because a chain without a branch is one edge.
//!
//! The cost of a walk is its cache misses and mispredicted branches. So a node is one cache line
//! and has the first bytes of its label in a word, which needs one comparison. A child is found by
//! counting bits, not by a search, and all children are side by side.

use crate::error::{NoMemory, check_memory};

/// Slot of a node at which no topic ends.
const NO_SLOT: u32 = u32::MAX;
/// Labels up to this length are stored in the node.
const SHORT: usize = 8;
/// `Node::short` of a longer label.
const LONG: u8 = u8::MAX;
/// Sizes of blocks of children: 1, 2, 4 to 256.
const CLASSES: usize = 9;
/// A trie with fewer nodes is too small to be rebuilt.
const MANY_NODES: usize = 1024;

/// Nodes in one array, with the children of one node side by side in a block. The first node is the
/// root, with an empty label.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    /// Labels that are too long for their nodes.
    labels: Vec<Box<[u8]>>,
    /// Indexes of unused labels.
    vacant_labels: Vec<u32>,
    /// Starts of unused blocks, by size.
    vacant: [Vec<u32>; CLASSES],
    /// Number of nodes in used blocks, including the root, and the highest such number so far.
    used: usize,
    most: usize,
}

#[derive(Debug)]
#[repr(align(64))]
struct Node {
    /// The label, or the first bytes of a long one, as a little-endian number. Only the root's
    /// label is empty.
    word: u64,
    slot: u32,
    /// Length of a short label, or `LONG`.
    short: u8,
    /// Numbers of children that begin with a byte below 64, 128 and 192.
    before: [u8; 3],
    /// Set of the first bytes of the children's labels: one bit for each byte value.
    firsts: [u64; 4],
    /// Index of the first child. The children are in order of their first bytes.
    children: u32,
    /// Index of a long label.
    label: u32,
}

/// The bits of a short label in its word.
#[inline]
fn mask(length: usize) -> u64 {
    if length == 0 { 0 } else { u64::MAX >> (64 - 8 * length.min(SHORT)) }
}

/// The first bytes of `bytes`, up to eight, as a little-endian number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// The size, as a power of two, of a block for `count` children.
fn class(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

impl Node {
    /// An unused node: an empty label, and no topic.
    const BLANK: Node =
        Node { word: 0, slot: NO_SLOT, short: 0, before: [0; 3], firsts: [0; 4], children: 0, label: 0 };

    /// The index of the child whose label begins with `byte`. If there is none, returns the index
    /// for such a child as an error.
    #[inline]
    fn place(&self, byte: u8) -> Result<usize, usize> {
        let index = usize::from(byte >> 6);
        let bit = 1 << (byte & 63);
        let before = if index == 0 { 0 } else { usize::from(self.before[index - 1]) };
        let place = before + (self.firsts[index] & (bit - 1)).count_ones() as usize;
        if self.firsts[index] & bit != 0 { Ok(place) } else { Err(place) }
    }

    /// The child whose label begins with `byte`.
    #[inline]
    fn child(&self, byte: u8) -> Option<usize> {
        self.place(byte).ok().map(|place| self.children as usize + place)
    }

    fn children(&self) -> std::ops::Range<usize> {
        let count: u32 = self.firsts.iter().map(|word| word.count_ones()).sum();
        self.children as usize..self.children as usize + count as usize
    }

    /// Notes that a child begins with `byte`, or that this child was removed.
    fn note(&mut self, byte: u8, there: bool) {
        let bit = 1 << (byte & 63);
        let word = &mut self.firsts[usize::from(byte >> 6)];
        *word = if there { *word | bit } else { *word & !bit };
        let mut count = 0;
        for (before, word) in self.before.iter_mut().zip(self.firsts) {
            count += word.count_ones() as u8;
            *before = count;
        }
    }

    /// Takes over the children of `other`.
    fn take_children(&mut self, other: &Node) {
        (self.before, self.firsts, self.children) = (other.before, other.firsts, other.children);
    }
}

impl Trie {
    /// An empty trie.
    pub(super) fn new() -> Self {
        Trie {
            nodes: vec![Node::BLANK],
            labels: Vec::new(),
            vacant_labels: Vec::new(),
            vacant: Default::default(),
            used: 1,
            most: 1,
        }
    }

    /// Makes room for the addition or removal of one topic of `bytes` bytes.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<(), NoMemory> {
        // A new block and a larger one for its siblings; two labels; two blocks that become vacant.
        self.nodes.try_reserve(2 + (1 << (CLASSES - 1)))?;
        self.labels.try_reserve(2)?;
        self.vacant_labels.try_reserve(2)?;
        self.vacant.iter_mut().try_for_each(|vacant| vacant.try_reserve(2))?;
        // Memory for the label of the topic, a copy of it, and the two labels that it is split
        // into.
        check_memory(3 * bytes)
    }

    /// Replaces a node, which must be blank or no longer needed.
    fn set(&mut self, node: usize, label: &[u8], slot: u32) {
        self.blank(node);
        let (mut short, mut number) = (label.len() as u8, 0);
        if label.len() > SHORT {
            short = LONG;
            number = self.vacant_labels.pop().unwrap_or_else(|| {
                self.labels.push(Box::default());
                self.labels.len() as u32 - 1
            });
            self.labels[number as usize] = label.into();
        }
        self.nodes[node] = Node { word: word(label), slot, short, label: number, ..Node::BLANK };
    }

    /// Blanks a node. Returns its former content without its label.
    fn blank(&mut self, node: usize) -> Node {
        let former = std::mem::replace(&mut self.nodes[node], Node::BLANK);
        if former.short == LONG {
            self.labels[former.label as usize] = Box::default();
            self.vacant_labels.push(former.label);
        }
        former
    }

    /// The label of a node. `room` is for a short one.
    fn label<'a>(&'a self, node: usize, room: &'a mut [u8; SHORT]) -> &'a [u8] {
        let node = &self.nodes[node];
        *room = node.word.to_le_bytes();
        match room.get(..usize::from(node.short)) {
            Some(short) => short,
            None => &self.labels[node.label as usize],
        }
    }

    /// Takes an unused block of children, or adds one.
    fn block(&mut self, class: usize) -> u32 {
        self.used += 1 << class;
        self.most = self.most.max(self.used);
        self.vacant[class].pop().unwrap_or_else(|| {
            let end = self.nodes.len() + (1 << class);
            self.nodes.resize_with(end, || Node::BLANK);
            (end - (1 << class)) as u32
        })
    }

    /// Marks a block of children as unused.
    fn vacate(&mut self, class: usize, start: usize) {
        self.used -= 1 << class;
        self.vacant[class].push(start as u32);
    }

    /// True if most of the trie's memory is unused, and there is much of it.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        self.most > MANY_NODES + 4 * self.used
    }

    /// Moves nodes forward or backward.
    fn move_nodes(&mut self, from: std::ops::Range<usize>, to: usize) {
        let (start, count) = (from.start, from.len());
        for step in 0..count {
            let index = if to > start { count - 1 - step } else { step };
            self.nodes.swap(start + index, to + index);
        }
    }

    /// Adds a child, a leaf. No other child may begin with the same byte.
    fn add_child(&mut self, node: usize, label: &[u8], slot: u32) {
        let Err(place) = self.nodes[node].place(label[0]) else { return };
        let children = self.nodes[node].children();
        let count = children.len();
        if count == 0 || class(count) != class(count + 1) {
            let block = self.block(class(count + 1));
            self.move_nodes(children.clone(), block as usize);
            if count > 0 {
                self.vacate(class(count), children.start);
            }
            self.nodes[node].children = block;
        }
        let start = self.nodes[node].children as usize;
        self.move_nodes(start + place..start + count, start + place + 1);
        self.set(start + place, label, slot);
        self.nodes[node].note(label[0], true);
    }

    /// Removes a child that has no children.
    fn remove_child(&mut self, node: usize, first: u8) {
        let Ok(place) = self.nodes[node].place(first) else { return };
        let children = self.nodes[node].children();
        let count = children.len();
        self.blank(children.start + place);
        self.move_nodes(children.start + place + 1..children.end, children.start + place);
        self.nodes[node].note(first, false);
        if count == 1 {
            self.vacate(0, children.start);
        } else if class(count) != class(count - 1) {
            let block = self.block(class(count - 1));
            self.move_nodes(children.start..children.end - 1, block as usize);
            self.vacate(class(count), children.start);
            self.nodes[node].children = block;
        }
    }

    /// Stores `slot` under `topic`, and replaces a former slot.
    pub(super) fn insert(&mut self, topic: &[u8], slot: u32) {
        let (mut at, mut rest) = (0_usize, topic);
        while !rest.is_empty() {
            let Some(child) = self.nodes[at].child(rest[0]) else {
                return self.add_child(at, rest, slot);
            };
            let mut room = [0; SHORT];
            let label = self.label(child, &mut room);
            let common = label.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if common < label.len() {
                self.split(child, common);
            }
            at = child;
            rest = &rest[common..];
        }
        self.nodes[at].slot = slot;
    }

    /// Cuts the edge to `node` after `keep` bytes: the node keeps its place, and a new child takes
    /// over its former content.
    fn split(&mut self, node: usize, keep: usize) {
        let label = self.label(node, &mut [0; SHORT]).to_vec();
        let (upper, lower) = label.split_at(keep);
        let former = self.blank(node);
        self.set(node, upper, NO_SLOT);
        self.add_child(node, lower, former.slot);
        let child = self.nodes[node].children as usize;
        self.nodes[child].take_children(&former);
    }

    /// Removes `topic`, if it is there.
    pub(super) fn remove(&mut self, topic: &[u8]) {
        let (mut parent, mut at, mut rest) = (0_usize, 0_usize, topic);
        while !rest.is_empty() {
            let Some(child) = self.nodes[at].child(rest[0]) else { return };
            let Some(tail) = rest.strip_prefix(self.label(child, &mut [0; SHORT])) else { return };
            (parent, at, rest) = (at, child, tail);
        }
        self.nodes[at].slot = NO_SLOT;
        if at != 0 && self.nodes[at].children().is_empty() {
            let first = self.nodes[at].word as u8;
            self.remove_child(parent, first);
            at = parent;
        }
        self.merge(at);
    }

    /// Merges a node that only leads to one child with that child.
    fn merge(&mut self, node: usize) {
        let children = self.nodes[node].children();
        if node == 0 || self.nodes[node].slot != NO_SLOT || children.len() != 1 {
            return;
        }
        let child = children.start;
        let label = [self.label(node, &mut [0; SHORT]), self.label(child, &mut [0; SHORT])].concat();
        let lower = self.blank(child);
        self.set(node, &label, lower.slot);
        self.nodes[node].take_children(&lower);
        self.vacate(0, child);
    }

    /// Calls `found` with the slot of every stored prefix of `subject`, short ones first, until it
    /// returns false.
    pub(super) fn prefixes(&self, subject: &[u8], mut found: impl FnMut(u32) -> bool) {
        let (mut node, mut rest) = (&self.nodes[0], subject);
        loop {
            if node.slot != NO_SLOT && !found(node.slot) {
                return;
            }
            let Some(&first) = rest.first() else { return };
            let Some(child) = node.child(first) else { return };
            node = &self.nodes[child];
            let length = usize::from(node.short);
            if node.short == LONG {
                let Some(tail) = rest.strip_prefix(&*self.labels[node.label as usize]) else { return };
                rest = tail;
            } else if length <= rest.len() && (word(rest) ^ node.word) & mask(length) == 0 {
                rest = &rest[length..];
            } else {
                return;
            }
        }
    }

    /// Memory of the trie in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self, allocated: impl Fn(usize) -> usize) -> usize {
        let vacant: usize = self.vacant.iter().map(Vec::capacity).sum();
        let labels: usize = self.labels.iter().map(|label| allocated(label.len())).sum();
        let lists = 16 * self.labels.capacity() + 4 * (vacant + self.vacant_labels.capacity());
        64 * self.nodes.capacity() + labels + lists
    }

    /// Number of nodes in used blocks, including the root.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        let vacant: usize = self.vacant.iter().enumerate().map(|(class, blocks)| blocks.len() << class).sum();
        assert_eq!(self.nodes.len() - vacant, self.used);
        assert_eq!(
            self.labels.len() - self.vacant_labels.len(),
            self.nodes.iter().filter(|node| node.short == LONG).count()
        );
        self.used
    }
}
