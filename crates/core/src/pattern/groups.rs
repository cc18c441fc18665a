//! Groups of peers with the same subscriptions. Such a group gets its messages by one
//! `pipe::Broadcast`.
//!
//! A group gets a number with its second member. The lists of the topics then contain the group's
//! number instead of its members (`subscriptions`), so a message finds a thousand equal subscribers
//! as fast as one.

use super::hash::SeededHash;
use crate::pipe::PipeId;
use std::collections::HashMap;

/// A set of topics (slots, ascending).
pub(super) type TopicSet = Box<[u32]>;

/// The pipes with one set of topics.
#[derive(Debug)]
struct Group {
    key: TopicSet,
    pipes: Vec<PipeId>,
}

/// All groups, including groups of one pipe.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_key: HashMap<TopicSet, u32, SeededHash>,
    groups: Vec<Option<Group>>,
    vacant: Vec<u32>,
    /// The group of each pipe, indexed by the number of the pipe.
    of_pipe: Vec<Option<u32>>,
}

/// Change of a group when a pipe enters or leaves it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GroupChange {
    /// The group has one member, or is empty: a group of one needs no broadcast.
    Nothing,
    /// The group has two members for the first time, these two.
    Formed(u32, [PipeId; 2]),
    /// The group has one more member.
    Grown(u32),
    /// The group has one member less.
    Shrunk(u32),
    /// Only this member is left, so the group needs no broadcast any longer.
    Dissolved(u32, PipeId),
}

impl Groups {
    /// The group of a pipe. The pipe may be its only member.
    pub(super) fn group_of(&self, pipe: PipeId) -> Option<u32> {
        self.of_pipe.get(pipe.0 as usize).copied().flatten()
    }

    /// The topics of a group.
    pub(super) fn key(&self, group: u32) -> &[u32] {
        self.groups.get(group as usize).and_then(Option::as_ref).map_or(&[], |group| &group.key)
    }

    /// Puts a pipe, which is in no group, into the group with these topics.
    pub(super) fn enter(&mut self, pipe: PipeId, key: TopicSet) -> GroupChange {
        let number = match self.by_key.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.vacant.pop().unwrap_or_else(|| {
                    self.groups.push(None);
                    self.groups.len() as u32 - 1
                });
                self.groups[number as usize] = Some(Group { key: key.clone(), pipes: Vec::new() });
                self.by_key.insert(key, number);
                number
            }
        };
        if pipe.0 as usize >= self.of_pipe.len() {
            self.of_pipe.resize(pipe.0 as usize + 1, None);
        }
        self.of_pipe[pipe.0 as usize] = Some(number);
        let Some(group) = &mut self.groups[number as usize] else { return GroupChange::Nothing };
        group.pipes.push(pipe);
        match group.pipes[..] {
            [_] => GroupChange::Nothing,
            [first, second] => GroupChange::Formed(number, [first, second]),
            _ => GroupChange::Grown(number),
        }
    }

    /// Takes a pipe out of its group.
    pub(super) fn leave(&mut self, pipe: PipeId) -> GroupChange {
        let Some(number) = self.of_pipe.get_mut(pipe.0 as usize).and_then(Option::take) else {
            return GroupChange::Nothing;
        };
        let Some(group) = &mut self.groups[number as usize] else { return GroupChange::Nothing };
        group.pipes.retain(|&other| other != pipe);
        match group.pipes[..] {
            [] => {
                if let Some(group) = self.groups[number as usize].take() {
                    self.by_key.remove(&group.key);
                }
                self.vacant.push(number);
                GroupChange::Nothing
            }
            [last] => GroupChange::Dissolved(number, last),
            _ => GroupChange::Shrunk(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_form_grow_shrink_and_dissolve() {
        let mut groups = Groups::default();
        let [a, b, c] = [0, 1, 7].map(PipeId);
        let key = || TopicSet::from([3, 4]);
        assert_eq!(groups.enter(a, key()), GroupChange::Nothing);
        assert_eq!(groups.enter(c, TopicSet::from([3])), GroupChange::Nothing);
        let number = groups.group_of(a).unwrap();
        assert_eq!(groups.enter(b, key()), GroupChange::Formed(number, [a, b]));
        assert_eq!(groups.leave(c), GroupChange::Nothing);
        assert_eq!(groups.enter(c, key()), GroupChange::Grown(number));
        assert_eq!(groups.key(number), [3, 4]);
        assert_eq!(groups.leave(a), GroupChange::Shrunk(number));
        assert_eq!(groups.leave(a), GroupChange::Nothing);
        assert_eq!(groups.leave(b), GroupChange::Dissolved(number, c));
        assert_eq!(groups.enter(a, key()), GroupChange::Formed(number, [c, a]));
        assert_eq!(groups.leave(c), GroupChange::Dissolved(number, a));
        assert_eq!(groups.leave(a), GroupChange::Nothing);
        assert_eq!((groups.group_of(a), groups.key(number)), (None, &[][..]));
        assert_eq!(groups.leave(PipeId(99)), GroupChange::Nothing);
    }
}
