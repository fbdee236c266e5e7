//! Closed sets of values that options and requests select by name.

/// A value of a closed set, with a name in options and outputs.
pub trait NamedValue: Copy + 'static {
    /// All values, in the order of lists for users.
    const ALL: &'static [Self];

    /// Name in options and outputs.
    fn name(self) -> &'static str;

    /// Description in help texts and lists, without a final full stop.
    fn description(self) -> &'static str;

    /// Returns the value of this name, if any.
    fn from_name(name: &str) -> Option<Self> {
        let mut values = Self::ALL.iter().copied();
        values.find(|value| value.name() == name)
    }
}

/// Declares an enumeration of [`NamedValue`]s: `Variant = "name": "description",` each.
macro_rules! named_values {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident {
            $($variant:ident = $name:literal: $description:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type {
            $(#[doc = concat!($description, ".")] $variant,)*
        }

        impl NamedValue for $type {
            const ALL: &'static [$type] = &[$($type::$variant),*];

            fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            fn description(self) -> &'static str {
                match self {
                    $($type::$variant => $description,)*
                }
            }
        }
    };
}

pub(crate) use named_values;
