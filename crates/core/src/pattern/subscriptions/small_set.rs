//! A list that usually has at most one member, and then needs no allocation.

/// Values in ascending order, each once.
#[derive(Debug, Default)]
pub(super) enum SmallSet<T> {
    #[default]
    None,
    One(T),
    /// At least two. In a box, because there are one or two such lists for each topic.
    #[allow(clippy::box_collection)]
    More(Box<Vec<T>>),
}

impl<T: Copy + Ord> SmallSet<T> {
    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            SmallSet::None => &[],
            SmallSet::One(value) => std::slice::from_ref(value),
            SmallSet::More(values) => values,
        }
    }

    pub(super) fn insert(&mut self, value: T) {
        match self {
            SmallSet::None => *self = SmallSet::One(value),
            SmallSet::One(one) if *one == value => {}
            SmallSet::One(one) => *self = SmallSet::More(Box::new(vec![value.min(*one), value.max(*one)])),
            SmallSet::More(values) => {
                if let Err(position) = values.binary_search(&value) {
                    values.insert(position, value);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, value: T) {
        match self {
            SmallSet::One(one) if *one == value => *self = SmallSet::None,
            SmallSet::More(values) => {
                if let Ok(position) = values.binary_search(&value) {
                    values.remove(position);
                }
                if let [last] = values[..] {
                    *self = SmallSet::One(last);
                } else if values.capacity() > 4 * values.len() {
                    values.shrink_to(2 * values.len());
                }
            }
            _ => {}
        }
    }
}
