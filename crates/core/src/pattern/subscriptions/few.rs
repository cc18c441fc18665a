//! A list that usually has at most one member, and then needs no allocation.

/// Values in ascending order, each once.
#[derive(Debug, Default)]
pub(super) enum Few<T> {
    #[default]
    None,
    One(T),
    /// At least two. In a box, because there are one or two such lists for each topic.
    #[allow(clippy::box_collection)]
    More(Box<Vec<T>>),
}

impl<T: Copy + Ord> Few<T> {
    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(value) => std::slice::from_ref(value),
            Few::More(values) => values,
        }
    }

    pub(super) fn insert(&mut self, value: T) {
        match self {
            Few::None => *self = Few::One(value),
            Few::One(one) if *one == value => {}
            Few::One(one) => *self = Few::More(Box::new(vec![value.min(*one), value.max(*one)])),
            Few::More(values) => {
                if let Err(position) = values.binary_search(&value) {
                    values.insert(position, value);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, value: T) {
        match self {
            Few::One(one) if *one == value => *self = Few::None,
            Few::More(values) => {
                if let Ok(position) = values.binary_search(&value) {
                    values.remove(position);
                }
                if let [last] = values[..] {
                    *self = Few::One(last);
                } else if values.capacity() > 4 * values.len() {
                    values.shrink_to(2 * values.len());
                }
            }
            _ => {}
        }
    }
}
