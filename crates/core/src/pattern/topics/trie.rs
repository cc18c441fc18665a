//! A byte trie with whole labels on its edges: finds all stored prefixes of a subject in one walk.
//!
//! [`Topics`](super::Topics) keeps one only while its topics have many different lengths. The trie stores numbers (the slots of the
//! topics); memory is proportional to the topics, however long they are, since chains without a branch are one edge.

/// No topic ends here.
const NO_SLOT: u32 = u32::MAX;

/// Nodes in one array; the first one is the root, with an empty label.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Node {
    /// The bytes on the edge to this node; not empty except at the root.
    label: Box<[u8]>,
    slot: u32,
    /// First byte of the label and index of each child, sorted.
    children: Vec<(u8, u32)>,
}

impl Node {
    fn leaf(label: &[u8], slot: u32) -> Self {
        Node { label: label.into(), slot, children: Vec::new() }
    }

    fn child(&self, byte: u8) -> Result<usize, usize> {
        self.children.binary_search_by_key(&byte, |&(first, _)| first)
    }
}

impl Trie {
    /// An empty trie.
    pub(super) fn new() -> Self {
        Trie { nodes: vec![Node::leaf(b"", NO_SLOT)], vacant: Vec::new() }
    }

    fn add(&mut self, node: Node) -> u32 {
        match self.vacant.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    /// Stores `slot` under `topic`, in place of what was there.
    pub(super) fn insert(&mut self, topic: &[u8], slot: u32) {
        let (mut at, mut rest) = (0_usize, topic);
        while !rest.is_empty() {
            match self.nodes[at].child(rest[0]) {
                Err(position) => {
                    let leaf = self.add(Node::leaf(rest, slot));
                    self.nodes[at].children.insert(position, (rest[0], leaf));
                    return;
                }
                Ok(position) => {
                    let child = self.nodes[at].children[position].1 as usize;
                    let label = &self.nodes[child].label;
                    let common = label.iter().zip(rest).take_while(|(a, b)| a == b).count();
                    if common < label.len() {
                        self.split(child, common);
                    }
                    at = child;
                    rest = &rest[common..];
                }
            }
        }
        self.nodes[at].slot = slot;
    }

    /// Cuts the edge to `node` after `keep` bytes: the node keeps its place, and a new child takes over what it was.
    fn split(&mut self, node: usize, keep: usize) {
        let upper = Node::leaf(&self.nodes[node].label[..keep], NO_SLOT);
        let mut lower = std::mem::replace(&mut self.nodes[node], upper);
        lower.label = lower.label[keep..].into();
        let first = lower.label[0];
        let lower = self.add(lower);
        self.nodes[node].children.push((first, lower));
    }

    /// Forgets `topic`, if it is there.
    pub(super) fn remove(&mut self, topic: &[u8]) {
        let (mut parent, mut at, mut rest) = (0_usize, 0_usize, topic);
        while !rest.is_empty() {
            let Ok(position) = self.nodes[at].child(rest[0]) else { return };
            let child = self.nodes[at].children[position].1 as usize;
            let Some(tail) = rest.strip_prefix(&*self.nodes[child].label) else { return };
            (parent, at, rest) = (at, child, tail);
        }
        self.nodes[at].slot = NO_SLOT;
        if at != 0 && self.nodes[at].children.is_empty() {
            let first = self.nodes[at].label[0];
            if let Ok(position) = self.nodes[parent].child(first) {
                self.nodes[parent].children.remove(position);
            }
            self.release(at);
            at = parent;
        }
        self.merge(at);
    }

    /// Joins a node that only leads to one child with that child.
    fn merge(&mut self, node: usize) {
        if node == 0 || self.nodes[node].slot != NO_SLOT {
            return;
        }
        if let [(_, child)] = self.nodes[node].children[..] {
            let lower = std::mem::replace(&mut self.nodes[child as usize], Node::leaf(b"", NO_SLOT));
            let upper = &mut self.nodes[node];
            upper.label = [&*upper.label, &*lower.label].concat().into();
            upper.slot = lower.slot;
            upper.children = lower.children;
            self.release(child as usize);
        }
    }

    fn release(&mut self, node: usize) {
        self.nodes[node] = Node::leaf(b"", NO_SLOT);
        self.vacant.push(node as u32);
    }

    /// Calls `found` with the slot of every stored prefix of `subject`, short ones first, until it returns false.
    pub(super) fn prefixes(&self, subject: &[u8], mut found: impl FnMut(u32) -> bool) {
        let (mut node, mut rest) = (&self.nodes[0], subject);
        loop {
            if node.slot != NO_SLOT && !found(node.slot) {
                return;
            }
            let Some(&first) = rest.first() else { return };
            let Ok(position) = node.child(first) else { return };
            node = &self.nodes[node.children[position].1 as usize];
            let Some(tail) = rest.strip_prefix(&*node.label) else { return };
            rest = tail;
        }
    }

    /// Nodes in use, the root included.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.nodes.len() - self.vacant.len()
    }
}
