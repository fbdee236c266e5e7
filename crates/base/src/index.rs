//! Typed positions in lists, with one type per list, so that a position in one list cannot be
//! used in another.

/// Declares the type of positions in one list: `index!(/** Position of a state. */ Name(u16))`.
#[macro_export]
macro_rules! index {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub $number);
        impl $name {
            /// Returns the position as `usize`.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
