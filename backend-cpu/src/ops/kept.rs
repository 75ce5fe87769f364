//! What is computed from views and wanted again, kept until the memory of one of them is written.

/// Values by what they were computed from.
pub(crate) struct Kept<K, V> {
    entries: Vec<Entry<K, V>>,
}

struct Entry<K, V> {
    /// None when the value is out of date; its memory is then used for another one.
    key: Option<K>,
    value: V,
}

/// Names a kept value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptId(usize);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept { entries: Vec::new() }
    }
}

impl<K: PartialEq, V: Default> Kept<K, V> {
    /// The value of `key`; `compute` turns any value into it where there is none yet.
    pub(super) fn entry(&mut self, key: K, compute: impl FnOnce(&mut V)) -> KeptId {
        if let Some(index) = self.entries.iter().position(|entry| entry.key.as_ref() == Some(&key))
        {
            return KeptId(index);
        }
        let vacant = self.entries.iter().position(|entry| entry.key.is_none());
        let index = vacant.unwrap_or_else(|| {
            self.entries.push(Entry { key: None, value: V::default() });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        compute(&mut entry.value);
        entry.key = Some(key);
        KeptId(index)
    }

    /// A value asked for since the last call of [`forget`](Kept::forget).
    pub(super) fn get(&self, id: KeptId) -> &V {
        &self.entries[id.0].value
    }

    /// Forgets values by what they were computed from.
    pub(super) fn forget(&mut self, is_stale: impl Fn(&K) -> bool) {
        for entry in &mut self.entries {
            entry.key.take_if(|key| is_stale(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_computed_once_until_forgotten() {
        let mut kept = Kept::<u32, Vec<u32>>::default();
        let id = kept.entry(7, |value| value.push(1));
        assert_eq!(kept.entry(7, |_| panic!("it is there")), id);
        let other = kept.entry(8, |value| value.push(2));
        kept.forget(|&key| key == 7);
        assert_eq!(kept.get(other), &[2]);
        assert_eq!(kept.entry(9, |value| value.push(3)), id, "memory is used again");
        assert_eq!(kept.get(id), &[1, 3]);
    }
}
