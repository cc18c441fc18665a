//! Counts the files, the spine and the returns of a walk. [`crate::walk`] defines them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::symbols::Functions;
use super::trace::{Activation, Mark, Step, Walk};

/// A file of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub on_spine: bool,
}

/// The result for a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the order in which they are entered first.
    pub files: Vec<File>,
    /// Calls between two files of the spine, to one that was entered before: from, to.
    pub returns: Vec<(String, String)>,
}

impl Counts {
    /// Returns the files on the spine.
    pub fn spine(&self) -> Vec<&str> {
        self.files.iter().filter(|file| file.on_spine).map(|file| file.name.as_str()).collect()
    }
}

/// A file of the workspace on the stack, and the activation of its function.
type Frame<'a> = (usize, &'a str);

/// Returns the addresses whose functions [`count`] needs.
pub fn addresses(walks: &[Walk], activations: &[Activation]) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut seen = HashSet::new();
    for step in walks.iter().flat_map(|walk| &walk.steps) {
        found.insert(step.address);
        let mut next = Some(step.activation);
        while let Some(activation) = next.filter(|next| seen.insert(*next)).map(|next| &activations[next]) {
            found.insert(activation.site);
            next = activation.caller;
        }
    }
    found
}

struct Stacks<'a> {
    functions: &'a Functions,
    activations: &'a [Activation],
    /// The file of each activation's function: that of its first instruction.
    files: HashMap<usize, &'a str>,
    /// The frames above each activation.
    above: HashMap<usize, Vec<Frame<'a>>>,
}

impl<'a> Stacks<'a> {
    /// Returns the files of an instruction: of its function, and of those inlined into it.
    fn frames(&self, activation: usize, address: u64) -> Vec<Frame<'a>> {
        let chain = self.functions.get(&address).map(Vec::as_slice).unwrap_or_default();
        // addr2line takes an inlined instruction that has no range for one of the outer function, with the inlined file.
        let outer = self.files.get(&activation).copied();
        let outer = outer.filter(|outer| chain.first().is_some_and(|first| first.as_str() != *outer));
        outer.into_iter().chain(chain.iter().map(String::as_str)).map(|file| (activation, file)).collect()
    }

    /// Returns the files of the workspace on the stack, the outermost first.
    fn of(&mut self, activation: usize, address: u64) -> Vec<Frame<'a>> {
        let mut stack = self.above(activation);
        stack.extend(self.frames(activation, address));
        stack
    }

    fn above(&mut self, activation: usize) -> Vec<Frame<'a>> {
        if let Some(known) = self.above.get(&activation) {
            return known.clone();
        }
        let Activation { caller, site, .. } = self.activations[activation];
        let stack = caller.map(|caller| self.of(caller, site)).unwrap_or_default();
        self.above.insert(activation, stack.clone());
        stack
    }
}

/// Counts a walk.
pub fn count(walk: &Walk, activations: &[Activation], functions: &Functions) -> Counts {
    let mut files = HashMap::new();
    for Step { activation, address, mark } in &walk.steps {
        let first = functions.get(address).and_then(|chain| chain.first()).map(String::as_str);
        if let (Some(first), Mark::Executed) = (first, mark) {
            files.entry(*activation).or_insert(first);
        }
    }
    let mut stacks = Stacks { functions, activations, files, above: HashMap::new() };
    let mut order: Vec<&str> = Vec::new();
    let mut spine: HashSet<&str> = HashSet::new();
    for Step { activation, address, mark } in &walk.steps {
        if *mark != Mark::Executed {
            spine.extend(stacks.of(*activation, *address).iter().map(|(_, file)| *file));
        }
        for (_, file) in stacks.frames(*activation, *address) {
            if !order.contains(&file) {
                order.push(file);
            }
        }
    }
    spine.retain(|file| order.contains(file));
    let mut returns = Vec::new();
    let mut entered: HashSet<&str> = HashSet::new();
    let mut known: HashSet<Frame> = HashSet::new();
    for Step { activation, address, .. } in &walk.steps {
        let stack = stacks.of(*activation, *address);
        for (at, frame) in stack.iter().enumerate() {
            if !known.insert(*frame) {
                continue;
            }
            let (from, to) = (at.checked_sub(1).map_or(frame.1, |above| stack[above].1), frame.1);
            let is_return = !entered.insert(to) && from != to && spine.contains(from) && spine.contains(to);
            let pair = (from.to_owned(), to.to_owned());
            if is_return && !returns.contains(&pair) {
                returns.push(pair);
            }
        }
    }
    let on_spine = |name: &str| spine.contains(name);
    let files =
        order.into_iter().map(|name| File { name: name.to_owned(), on_spine: on_spine(name) }).collect();
    Counts { files, returns }
}

/// Returns the walk that is counted most often, and the first of several.
pub fn most_frequent(counts: Vec<Counts>) -> Option<Counts> {
    let frequency = |one: &Counts| counts.iter().filter(|other| *other == one).count();
    let best = counts.iter().map(frequency).max()?;
    counts.iter().find(|one| frequency(one) == best).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of the file `a` (at 0) calls one of `b` (at 10), which calls one of the standard library (at 20), which calls one
    /// of `c` (at 30), which accesses the message. Then `a` calls `b` again.
    fn counted(planted: Option<&str>) -> Counts {
        let activation = |caller, site| Activation { caller, site, back: 0 };
        let activations = [
            activation(None, 0),
            activation(Some(0), 1),
            activation(Some(1), 11),
            activation(Some(2), 21),
            activation(Some(0), 2),
        ];
        let step = |activation, address, mark| Step { activation, address, mark };
        let steps = vec![
            step(0, 0, Mark::Executed),
            step(1, 10, Mark::Executed),
            step(2, 20, Mark::Executed),
            step(3, 30, Mark::Message),
            step(3, 31, Mark::Executed),
            step(4, 10, Mark::Executed),
        ];
        let mut functions = Functions::new();
        for (addresses, file) in [(0..3, "a"), (10..12, "b"), (30..32, "c")] {
            functions.extend(addresses.map(|address| (address, vec![file.to_owned()])));
        }
        functions.extend((20..22).map(|address| (address, Vec::new())));
        if let Some(file) = planted {
            // A function that is inlined into the one of `b`.
            functions.insert(10, vec!["b".to_owned(), file.to_owned()]);
        }
        let mut walk = Walk::default();
        walk.steps = steps;
        count(&walk, &activations, &functions)
    }

    #[test]
    fn files_spine_and_returns() {
        let counts = counted(None);
        assert_eq!(counts.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(counts.spine(), ["a", "b", "c"]);
        assert_eq!(counts.returns, [("a".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn an_inlined_file_counts_and_is_found_by_the_ratchet() {
        let (old, new) = (counted(None), counted(Some("planted.rs")));
        let found = super::super::ratchet::findings("send", Some(&old), &new);
        assert_eq!(found, ["send: 4 files, more than 3. New: planted.rs"]);
    }
}
