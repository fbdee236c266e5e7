//! Parameters of homes, over which seeds are distributed: the one that ships, and others that are small enough to be
//! full most of the time.

/// Parameters of the home to build: the generics of `home.sv`. Small directories are intended to overflow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub struct Shape {
    /// Units per slice, a power of two up to 32.
    pub units: usize,
    /// Binary logarithm of the number of sets in each unit's directory.
    pub set_bits: u32,
    /// Width of a tag in bits, at least 16, because runs use lines of that range.
    pub tag_bits: u32,
    /// Ways per set, a power of two, at least 4.
    pub ways: usize,
    /// Ways compared per cycle, a power of two up to all of them.
    pub ways_per_step: usize,
    /// Reads of memory in flight per unit.
    pub reads: usize,
    /// Writes of memory in flight per unit.
    pub writes: usize,
    /// Local operations in progress per unit.
    pub locals: usize,
    /// Maximum number of requests that a unit defers, and of lines of a unit that the device locks.
    pub max_deferred: usize,
    /// Payload slots of requests per unit.
    pub store_slots: usize,
    /// Permission changes that a slice queues for the listener, a power of two.
    pub change_depth: usize,
    /// Units that share a port of the protocol ROM.
    pub units_per_port: usize,
    /// Width of a beat in bits: 64, 128, 256 or 512, at most that of a line. With an endpoint, 512.
    pub payload: usize,
    /// Binary logarithm of the cycles that a full set may take to free a way by itself, before a recall.
    pub recall_delay_log2: u32,
    /// Endpoint behind the home.
    pub endpoint: Endpoint,
    /// Lines per slice of a memory behind the home, a power of two.
    pub memory_lines: usize,
}

/// Endpoint behind the home that is built; without one, the home is driven from outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Endpoint {
    /// No endpoint.
    #[default]
    None,
    /// Coherent memory.
    Memory,
    /// Coherent memory, with the invalidation engine at the ports for local operations.
    Invalidation,
    /// Remote procedure calls over two lines of each slice.
    Rpc,
    /// An application, selected when the home is created, with pins for a memory of its own: see
    /// [`crate::verilated::Verilated::open_with`].
    Application,
}

impl Endpoint {
    /// True if the endpoint implements the memory, so that the AXI pins are idle.
    pub fn has_memory(self) -> bool {
        self != Endpoint::None
    }

    /// True if the endpoint drives the ports for local operations.
    pub fn drives_local_ports(self) -> bool {
        matches!(self, Endpoint::Invalidation | Endpoint::Rpc)
    }

    /// All kinds of endpoints.
    pub const ALL: [Endpoint; 5] = [
        Endpoint::None,
        Endpoint::Memory,
        Endpoint::Invalidation,
        Endpoint::Rpc,
        Endpoint::Application,
    ];
}

impl Shape {
    /// Returns a home that tracks a whole cache with the given sets and ways, with the shipped values of all other
    /// parameters.
    pub fn for_cache(units: usize, set_bits: u32, ways: usize) -> Shape {
        Shape {
            units,
            set_bits,
            ways,
            writes: 2,
            change_depth: 16,
            recall_delay_log2: 8,
            ..Shape::default()
        }
    }
}

impl Default for Shape {
    fn default() -> Shape {
        SHAPES[0].1
    }
}

/// Name of the shape that ships: the default parameters of `home.sv`.
pub const SHIPPED: &str = "shipped";

/// Minimal parameters, so that directories overflow and a unit's resources are often exhausted.
const SMALL: Shape = Shape {
    units: 2,
    set_bits: 1,
    tag_bits: 16,
    ways: 4,
    ways_per_step: 4,
    reads: 2,
    writes: 1,
    locals: 2,
    max_deferred: 2,
    store_slots: 2,
    change_depth: 2,
    units_per_port: 8,
    payload: 512,
    recall_delay_log2: 0,
    endpoint: Endpoint::None,
    memory_lines: 64,
};

/// All shapes, by name. Seeds use them in turn, so adding a shape changes the shape of most seeds.
pub const SHAPES: [(&str, Shape); 14] = [
    ("small", SMALL),
    (
        SHIPPED,
        Shape {
            units: 32,
            set_bits: 7,
            ways: 16,
            writes: 2,
            change_depth: 16,
            recall_delay_log2: 8,
            ..SMALL
        },
    ),
    // Four groups of ways, beats of an eighth of 1024 bits, and three of most resources instead of two.
    (
        "mixed",
        Shape {
            set_bits: 2,
            ways: 8,
            ways_per_step: 2,
            reads: 3,
            writes: 2,
            locals: 3,
            max_deferred: 3,
            store_slots: 3,
            change_depth: 4,
            units_per_port: 1,
            payload: 128,
            recall_delay_log2: 3,
            ..SMALL
        },
    ),
    ("one-unit", Shape { units: 1, ..SMALL }),
    // One of each resource that may be single.
    (
        "one-of-each",
        Shape {
            reads: 1,
            locals: 1,
            max_deferred: 1,
            store_slots: 1,
            ..SMALL
        },
    ),
    // One way compared per cycle.
    (
        "way-by-way",
        Shape {
            ways_per_step: 1,
            ..SMALL
        },
    ),
    (
        "two-groups",
        Shape {
            ways: 8,
            writes: 2,
            ..SMALL
        },
    ),
    // All ways of a set compared at once, in a directory that rarely overflows.
    (
        "all-ways",
        Shape {
            set_bits: 4,
            ways: 16,
            ways_per_step: 16,
            recall_delay_log2: 6,
            ..SMALL
        },
    ),
    (
        "half-beats",
        Shape {
            writes: 2,
            payload: 256,
            ..SMALL
        },
    ),
    (
        "narrow",
        Shape {
            units: 1,
            writes: 2,
            payload: 64,
            ..SMALL
        },
    ),
    ("many-reads", Shape { reads: 5, ..SMALL }),
    (
        "many-writes",
        Shape {
            reads: 1,
            writes: 4,
            store_slots: 5,
            ..SMALL
        },
    ),
    // ROM ports that several units share; the last port serves fewer.
    (
        "shared-ports",
        Shape {
            units: 4,
            locals: 4,
            units_per_port: 3,
            writes: 2,
            ..SMALL
        },
    ),
    (
        "sixteen-units",
        Shape {
            units: 8,
            set_bits: 3,
            tag_bits: 20,
            writes: 2,
            change_depth: 32,
            recall_delay_log2: 4,
            ..SMALL
        },
    ),
];

/// Returns the name of a seed's shape; consecutive seeds use the shapes in turn.
pub fn of_seed(seed: u64) -> &'static str {
    SHAPES[(seed % SHAPES.len() as u64) as usize].0
}

/// Returns the shape with this name, one of those in [`SHAPES`]; `None` if the name is unknown.
pub fn named(name: &str) -> Option<Shape> {
    SHAPES
        .iter()
        .find(|(candidate, _)| *candidate == name)
        .map(|(_, shape)| *shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Consecutive seeds have every shape, and no two shapes are equal.
    #[test]
    fn seeds_cover_all_distinct_shapes() {
        let names: BTreeSet<&str> = (0..SHAPES.len() as u64).map(of_seed).collect();
        assert_eq!(names.len(), SHAPES.len());
        assert!(SHAPES.len() >= 12);
        for (index, (name, shape)) in SHAPES.iter().enumerate() {
            assert_eq!(named(name), Some(*shape));
            let first_equal = SHAPES.iter().position(|(_, other)| other == shape);
            assert_eq!(first_equal, Some(index), "{name}");
        }
        assert_eq!(named("none"), None);
    }

    /// Every parameter has at least two different values among the shapes.
    #[test]
    fn every_parameter_of_the_home_is_varied() {
        let fields: [fn(&Shape) -> usize; 14] = [
            |shape| shape.units,
            |shape| shape.set_bits as usize,
            |shape| shape.tag_bits as usize,
            |shape| shape.ways,
            |shape| shape.ways_per_step,
            |shape| shape.ways / shape.ways_per_step,
            |shape| shape.reads,
            |shape| shape.writes,
            |shape| shape.locals,
            |shape| shape.max_deferred,
            |shape| shape.store_slots,
            |shape| shape.change_depth,
            |shape| shape.units_per_port,
            |shape| shape.payload,
        ];
        for (number, field) in fields.iter().enumerate() {
            let values: BTreeSet<usize> = SHAPES.iter().map(|(_, shape)| field(shape)).collect();
            assert!(values.len() >= 2, "{number}: {values:?}");
        }
    }

    /// The shipped shape has the default of every parameter of `home.sv`.
    #[test]
    fn shipped_shape_equals_the_rtl_defaults() {
        let home = crate::proof::rtl_source("home.sv");
        let default = |name: &str| {
            let mut lines = home.lines().map(str::trim);
            let line = lines.find_map(|line| {
                let line = line.strip_prefix("parameter int unsigned")?;
                let (parameter, value) = line.split_once('=')?;
                (parameter.trim() == name).then_some(value)
            });
            let value = line.unwrap_or_else(|| panic!("home.sv has no {name}"));
            let value = value.split([',', '/']).next().unwrap_or_default().trim();
            value.parse::<usize>().expect("a number")
        };
        let shipped = named(SHIPPED).expect("it is one of them");
        for (name, value) in [
            ("Units", shipped.units),
            ("SetWidth", shipped.set_bits as usize),
            ("TagWidth", shipped.tag_bits as usize),
            ("Ways", shipped.ways),
            ("WaysPerStep", shipped.ways_per_step),
            ("Reads", shipped.reads),
            ("Writes", shipped.writes),
            ("Locals", shipped.locals),
            ("MaxDeferred", shipped.max_deferred),
            ("StoreSlots", shipped.store_slots),
            ("ChangeDepth", shipped.change_depth),
            ("UnitsPerPort", shipped.units_per_port),
            ("PayloadWidth", shipped.payload),
            ("RecallDelayLog2", shipped.recall_delay_log2 as usize),
        ] {
            assert_eq!(value, default(name), "{name}");
        }
        assert_eq!(shipped, Shape::for_cache(32, 7, 16));
    }
}
