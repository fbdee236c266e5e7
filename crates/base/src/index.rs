//! Positions in lists, each list with a type of its own.

/// Declares a type for positions in one list: `index!(/** Where it leads. */ Name(u16))`.
#[macro_export]
macro_rules! index {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub $number);
        impl $name {
            /// The position in the list this index belongs to.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
