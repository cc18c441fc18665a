//! A map from memory addresses to values. Most sockets have one or two values, some have thousands.

use std::collections::HashMap;

/// Maximum number of values in a list. A map with more values uses a hash table.
const FEW: usize = 8;

/// A value with a name that is unique among the existing values of its kind.
pub(super) trait Keyed {
    fn key(&self) -> usize;
}

/// A map that takes little more memory than its values while they are few. A single value needs no
/// allocation.
pub(super) enum SmallMap<T> {
    One(Option<T>),
    List(Vec<T>),
    #[allow(clippy::box_collection)] // The map itself is twice as large as the other variants.
    Map(Box<HashMap<usize, T>>),
}

impl<T> Default for SmallMap<T> {
    fn default() -> Self {
        SmallMap::One(None)
    }
}

impl<T: Keyed> SmallMap<T> {
    /// Adds a value. Returns the former value of the same name.
    pub(super) fn insert(&mut self, value: T) -> Option<T> {
        let former = self.remove(value.key());
        match self {
            SmallMap::One(one) => match one.take() {
                None => *one = Some(value),
                Some(one) => {
                    let mut list = Vec::with_capacity(2);
                    list.extend([one, value]);
                    *self = SmallMap::List(list);
                }
            },
            SmallMap::List(list) if list.len() < FEW => list.push(value),
            SmallMap::List(list) => {
                let all = list.drain(..).chain([value]).map(|value| (value.key(), value));
                *self = SmallMap::Map(Box::new(all.collect()));
            }
            SmallMap::Map(map) => {
                map.insert(value.key(), value);
            }
        }
        former
    }

    /// Removes and returns a value.
    pub(super) fn remove(&mut self, name: usize) -> Option<T> {
        match self {
            SmallMap::One(one) => one.take_if(|value| value.key() == name),
            SmallMap::List(list) => {
                let index = list.iter().position(|value| value.key() == name)?;
                Some(list.swap_remove(index))
            }
            SmallMap::Map(map) => map.remove(&name),
        }
    }

    /// Returns the value of this name.
    pub(super) fn get(&self, name: usize) -> Option<&T> {
        match self {
            SmallMap::Map(map) => map.get(&name),
            _ => self.values().find(|value| value.key() == name),
        }
    }

    /// Iterates over all values, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        let (list, map) = match self {
            SmallMap::One(one) => (one.as_slice(), None),
            SmallMap::List(list) => (&list[..], None),
            SmallMap::Map(map) => (&[][..], Some(map)),
        };
        list.iter().chain(map.into_iter().flat_map(|map| map.values()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Value(usize, usize);

    impl Keyed for Value {
        fn key(&self) -> usize {
            self.0
        }
    }

    /// The map behaves like a `HashMap`, even across changes of its form.
    #[test]
    fn behaves_like_hash_map() {
        let (mut few, mut map) = (SmallMap::default(), HashMap::new());
        for step in 0..400_usize {
            let value = Value(step * 7 % 23, step);
            if step % 5 == 4 || step > 300 || step < 20 && step % 2 == 1 {
                assert_eq!(few.remove(value.0), map.remove(&value.0), "step {step}");
            } else {
                assert_eq!(few.insert(value), map.insert(value.0, value), "step {step}");
            }
            assert_eq!(few.get(value.0), map.get(&value.0), "step {step}");
            let mut both = [few.values().copied().collect::<Vec<_>>(), map.values().copied().collect()];
            both.iter_mut().for_each(|values| values.sort_unstable());
            assert_eq!(both[0], both[1], "step {step}");
        }
    }

    #[test]
    fn is_no_larger_than_a_vec() {
        assert!(size_of::<SmallMap<(usize, Box<u8>)>>() <= size_of::<Vec<u8>>());
    }
}
