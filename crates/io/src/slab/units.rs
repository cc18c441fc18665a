//! The units of a slab: which are in use, and which have memory.

use std::ops::Range;

/// Bytes of a unit.
pub(super) const UNIT: usize = 16 * 1024;

#[derive(Clone, Copy, Default)]
struct Unit {
    used: bool,
    /// True once the system has allocated its pages, which then stay.
    populated: bool,
}

/// The units of one slab.
pub(super) struct Units(Vec<Unit>);

impl Units {
    /// Creates free units without memory.
    pub(super) fn new(count: usize) -> Self {
        Units(vec![Unit::default(); count])
    }

    /// Takes the first run of `count` free units.
    pub(super) fn take(&mut self, count: usize) -> Option<Range<usize>> {
        let mut start = 0;
        while let Some(window) = self.0.get(start..start + count) {
            match window.iter().rposition(|unit| unit.used) {
                Some(last) => start += last + 1,
                None => {
                    let run = start..start + count;
                    self.0[run.clone()].iter_mut().for_each(|unit| unit.used = true);
                    return Some(run);
                }
            }
        }
        None
    }

    /// Frees a run that `take` has returned.
    pub(super) fn give(&mut self, run: Range<usize>) {
        self.0.get_mut(run).into_iter().flatten().for_each(|unit| unit.used = false);
    }

    /// Returns the first part of `run` without memory, and notes that it has memory from now on.
    pub(super) fn populate(&mut self, run: Range<usize>) -> Option<Range<usize>> {
        let units = self.0.get_mut(run.clone())?;
        let first = units.iter().position(|unit| !unit.populated)?;
        let count = units[first..].iter().take_while(|unit| !unit.populated).count();
        units[first..first + count].iter_mut().for_each(|unit| unit.populated = true);
        Some(run.start + first..run.start + first + count)
    }

    /// Takes back a note of `populate`.
    pub(super) fn forget_memory(&mut self, run: Range<usize>) {
        self.0.get_mut(run).into_iter().flatten().for_each(|unit| unit.populated = false);
    }

    /// Returns the number of units with memory.
    pub(super) fn populated(&self) -> usize {
        self.0.iter().filter(|unit| unit.populated).count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn first_free_run_is_taken_and_reused() {
        let mut units = Units::new(10);
        assert_eq!(units.take(3), Some(0..3));
        assert_eq!(units.take(4), Some(3..7));
        assert_eq!(units.take(4), None);
        units.give(0..3);
        assert_eq!(units.take(4), None);
        assert_eq!(units.take(2), Some(0..2));
        assert_eq!(units.take(3), Some(7..10));
        assert_eq!(units.take(2), None);
        assert_eq!(units.take(1), Some(2..3));
        [0..2, 2..3, 3..7].into_iter().for_each(|run| units.give(run));
        units.give(7..10);
        assert_eq!(units.take(10), Some(0..10));
    }

    #[test]
    fn each_unit_is_populated_once() {
        let mut units = Units::new(8);
        assert_eq!(units.populate(2..4), Some(2..4));
        assert_eq!(units.populate(1..6), Some(1..2));
        assert_eq!(units.populate(1..6), Some(4..6));
        assert_eq!(units.populate(1..6), None);
        assert_eq!(units.populated(), 5);
    }
}
