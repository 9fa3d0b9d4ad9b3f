//! A time or an offset that may be missing, in one word.

/// As `Option<i64>`, in half the memory: flows hold dozens. `i64::MIN` stands for `None`:
/// as a time it is the year 1677, and offsets stay far from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opt64(i64);

impl Opt64 {
    pub(crate) const NONE: Self = Self(i64::MIN);

    pub(crate) const fn some(value: i64) -> Self {
        Self(value)
    }

    #[inline]
    pub(crate) const fn get(self) -> Option<i64> {
        if self.0 == i64::MIN { None } else { Some(self.0) }
    }

    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        self.0 != i64::MIN
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == i64::MIN
    }

    /// Sets it if it is empty.
    #[inline]
    pub(crate) const fn or_set(&mut self, value: i64) {
        if self.is_none() {
            self.0 = value;
        }
    }

    pub(crate) const fn take(&mut self) -> Option<i64> {
        let was = self.get();
        *self = Self::NONE;
        was
    }
}

impl Default for Opt64 {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<i64>> for Opt64 {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Self::NONE, Self)
    }
}

/// As `Option<u32>` for what is less than `u32::MAX`, such as windows (30 bits at most).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opt32(u32);

impl Opt32 {
    pub(crate) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(crate) const fn get(self) -> Option<u32> {
        if self.0 == u32::MAX { None } else { Some(self.0) }
    }

    /// Sets it if it is empty.
    #[inline]
    pub(crate) const fn or_set(&mut self, value: u32) {
        if self.0 == u32::MAX {
            self.0 = value;
        }
    }

    /// The lesser of both, if both are there.
    #[inline]
    pub(crate) fn or_min(self, value: u32) -> Self {
        Self(self.0.min(value))
    }
}

impl Default for Opt32 {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<u32>> for Opt32 {
    fn from(value: Option<u32>) -> Self {
        value.map_or(Self::NONE, Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_an_option() {
        for option in [None, Some(0), Some(-1), Some(i64::MAX)] {
            let mut one = Opt64::from(option);
            assert_eq!(
                (one.get(), one.is_some(), one.is_none()),
                (option, option.is_some(), option.is_none())
            );
            one.or_set(7);
            assert_eq!(one.take(), option.or(Some(7)));
            assert_eq!(one, Opt64::NONE);
        }
        assert_eq!(size_of::<Opt64>(), 8);
    }

    #[test]
    fn as_an_option_of_32_bits() {
        for option in [None, Some(0), Some(7), Some(u32::MAX - 1)] {
            let mut one = Opt32::from(option);
            assert_eq!(
                (one.get(), one.or_min(7).get()),
                (option, Some(option.unwrap_or(7).min(7)))
            );
            one.or_set(9);
            assert_eq!(one.get(), option.or(Some(9)));
        }
        assert_eq!(size_of::<Opt32>(), 4);
    }
}
