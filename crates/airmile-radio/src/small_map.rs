//! A map of a few keys: bearers, cells, logical channels. With so small a number, a
//! linear scan is faster than a tree, and clearing keeps the allocation.

/// A map in the order in which keys came.
#[derive(Debug, Clone)]
pub(crate) struct SmallMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq, V> SmallMap<K, V> {
    /// The value of a key, created if absent.
    #[inline]
    pub(crate) fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        // Mostly there is one key.
        if self.0.first().is_some_and(|(of, _)| *of == key) {
            return &mut self.0[0].1;
        }
        let at = match self.0.iter().position(|(of, _)| *of == key) {
            Some(at) => at,
            None => {
                self.0.push((key, make()));
                self.0.len() - 1
            }
        };
        &mut self.0[at].1
    }

    /// Sets the value of a key; returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.0.iter_mut().find(|(of, _)| *of == key) {
            Some((_, last)) => Some(std::mem::replace(last, value)),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// The key, if there is one only.
    pub(crate) fn lone_key(&self) -> Option<K> {
        match self.0.as_slice() {
            [(key, _)] => Some(*key),
            _ => None,
        }
    }

    /// Gives the value of a key another key, which has none.
    pub(crate) fn rename(&mut self, key: K, to: K) {
        self.0.iter_mut().filter(|(of, _)| *of == key).for_each(|(of, _)| *of = to);
    }

    /// Keys and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }

    /// The values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all, keeping capacity for at most `room`.
    pub(crate) fn clear(&mut self, room: usize) {
        self.0.clear();
        self.0.shrink_to(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_value() {
        let mut map = SmallMap::default();
        *map.or_insert_with(3, || 10) += 1;
        *map.or_insert_with(3, || 10) += 1;
        assert_eq!((map.insert(3, 20), map.insert(5, 1)), (Some(12), None));
        assert_eq!(map.values().copied().collect::<Vec<_>>(), [20, 1]);
        assert_eq!(map.lone_key(), None);
        map.clear(0);
        assert!(map.is_empty());
    }
}
