//! A mapped netlist in the JSON format of Yosys (`write_json`), flattened, and its size by module.

use super::primitives::Primitive;
pub use super::size::Size;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A netlist as Yosys writes it.
#[derive(Deserialize)]
struct File {
    /// Modules by name, including those of the primitives.
    modules: BTreeMap<String, Module>,
}

/// A module of the file. Nets have numbers that are local to it.
#[derive(Deserialize)]
struct Module {
    /// Attributes; `blackbox` marks a primitive.
    #[serde(default)]
    attributes: BTreeMap<String, serde_json::Value>,
    /// Ports by name.
    #[serde(default)]
    ports: BTreeMap<String, Port>,
    /// Cells by name: primitives and instances of modules.
    #[serde(default)]
    cells: BTreeMap<String, Cell>,
    /// Names of nets; one name stands for all bits of a vector.
    #[serde(default)]
    netnames: BTreeMap<String, Name>,
}

/// A port of a module.
#[derive(Deserialize)]
struct Port {
    /// `input`, `output` or `inout`.
    direction: String,
    /// Net of each bit, the lowest bit first.
    bits: Vec<Bit>,
}

/// A cell of a module.
#[derive(Deserialize)]
struct Cell {
    /// Name of the primitive or of the module.
    #[serde(rename = "type")]
    kind: String,
    /// Parameters by name, as numbers or strings of bits.
    #[serde(default)]
    parameters: BTreeMap<String, serde_json::Value>,
    /// Direction of each port: `input`, `output` or `inout`.
    #[serde(default)]
    port_directions: BTreeMap<String, String>,
    /// Nets of each port, the lowest bit first.
    connections: BTreeMap<String, Vec<Bit>>,
}

/// Named nets.
#[derive(Deserialize)]
struct Name {
    /// 1 for a name that Yosys has generated.
    #[serde(default)]
    hide_name: u8,
    /// Net of each bit, the lowest bit first.
    bits: Vec<Bit>,
}

/// A net of the module, or a constant.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Bit {
    /// Number of the net within its module.
    Net(usize),
    /// A constant bit.
    Constant(#[allow(dead_code)] Constant),
}

/// Value of a constant bit.
#[derive(Deserialize, Clone, Copy)]
enum Constant {
    /// Logical 0.
    #[serde(rename = "0")]
    Low,
    /// Logical 1.
    #[serde(rename = "1")]
    High,
    /// Undefined value.
    #[serde(rename = "x")]
    Unknown,
    /// High impedance.
    #[serde(rename = "z")]
    Open,
}

/// A pin of a primitive, and its net.
pub(super) struct Pin {
    /// Name of the port of the primitive.
    pub name: String,
    /// True if the primitive drives the net.
    pub output: bool,
    /// Global number of the net.
    pub net: usize,
}

/// A primitive of the flattened netlist.
pub(super) struct Part {
    /// Cost and timing behaviour.
    pub primitive: Primitive,
    /// Name of the cell type.
    pub kind: String,
    /// Index of the instance that contains it.
    pub instance: usize,
    /// All connected pins; a port of several bits has one pin per bit.
    pub pins: Vec<Pin>,
    /// True for a memory block with output registers.
    pub registered: bool,
}

/// An instance of a module.
pub(super) struct Instance {
    /// Hierarchical path, such as `u_dcs.gen_unit[0].u_dcu`; empty for the top.
    pub path: String,
    /// Name of the module in the source.
    pub module: String,
}

/// Resources of a module over all of its instances, without submodules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleSize {
    /// Name of the module.
    pub module: String,
    /// Number of instances.
    pub instances: u64,
    /// Resources of all instances together.
    pub size: Size,
}

/// A flattened netlist.
pub struct Netlist {
    /// All primitives.
    pub(super) parts: Vec<Part>,
    /// All instances; the first is the top.
    pub(super) instances: Vec<Instance>,
    /// For each net, its preferred name and the instance that defines the name.
    pub(super) names: Vec<Option<(usize, String)>>,
    /// Nets at the input ports of the top, each with the name of the port and the index of the bit.
    pub(super) inputs: Vec<(usize, String)>,
    /// Nets at the output ports of the top, likewise.
    pub(super) outputs: Vec<(usize, String)>,
}

impl Netlist {
    /// Reads and flattens a netlist.
    ///
    /// # Errors
    /// The text is not a netlist in this format, the top module is absent, or a primitive is unknown.
    pub fn read(text: &str, top: &str) -> Result<Netlist, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut netlist = Netlist {
            parts: Vec::new(),
            instances: Vec::new(),
            names: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let module = file
            .modules
            .get(top)
            .ok_or_else(|| format!("the netlist has no module `{top}`"))?;
        let mut nets = FxHashMap::default();
        for (name, port) in &module.ports {
            for (index, bit) in port.bits.iter().enumerate() {
                let Some(net) = netlist.net(*bit, &mut nets) else {
                    continue;
                };
                let name = format!("{name}[{index}]");
                match port.direction.as_str() {
                    "input" => netlist.inputs.push((net, name)),
                    _ => netlist.outputs.push((net, name)),
                }
            }
        }
        netlist.add(&file, top, String::new(), nets)?;
        Ok(netlist)
    }

    /// Returns the global number of an instance's net; `None` for a constant.
    fn net(&mut self, bit: Bit, nets: &mut FxHashMap<usize, usize>) -> Option<usize> {
        match bit {
            Bit::Net(local_net) => Some(*nets.entry(local_net).or_insert_with(|| {
                self.names.push(None);
                self.names.len() - 1
            })),
            Bit::Constant(_) => None,
        }
    }

    /// Adds an instance of a module, with its submodules. `nets` maps the module's net numbers to the global
    /// ones; the nets of its ports must be in it.
    ///
    /// # Errors
    /// A primitive is unknown, or a cell connects a port that its module lacks.
    fn add(
        &mut self,
        file: &File,
        module: &str,
        path: String,
        mut nets: FxHashMap<usize, usize>,
    ) -> Result<(), String> {
        let definition = &file.modules[module];
        let instance = self.instances.len();
        self.instances.push(Instance {
            path: path.clone(),
            module: source_name(module).to_string(),
        });
        for (name, cell) in &definition.cells {
            // This cell only records the position of a flattened module.
            if cell.kind == "$scopeinfo" {
                continue;
            }
            let submodule = file.modules.get(&cell.kind);
            match submodule.filter(|module| !module.attributes.contains_key("blackbox")) {
                Some(inner) => {
                    let inner_nets = self.inner_nets(name, cell, inner, &mut nets)?;
                    let path = match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}.{name}"),
                    };
                    self.add(file, &cell.kind, path, inner_nets)?;
                }
                None => {
                    let primitive = Primitive::named(&cell.kind).ok_or_else(|| {
                        format!(
                            "`{}` is an unknown primitive (cell `{name}` of `{module}`)",
                            cell.kind
                        )
                    })?;
                    self.add_part(cell, primitive, instance, &mut nets);
                }
            }
        }
        self.name_nets(definition, instance, &mut nets);
        Ok(())
    }

    /// Returns the nets that the ports of a submodule are connected to.
    fn inner_nets(
        &mut self,
        name: &str,
        cell: &Cell,
        inner: &Module,
        nets: &mut FxHashMap<usize, usize>,
    ) -> Result<FxHashMap<usize, usize>, String> {
        let mut inner_nets = FxHashMap::default();
        for (port, bits) in &cell.connections {
            let inner = inner.ports.get(port).ok_or_else(|| {
                format!("`{name}` connects `{port}`, which `{}` has not", cell.kind)
            })?;
            for (&outer, &inner) in bits.iter().zip(&inner.bits) {
                if let (Some(net), Bit::Net(inner)) = (self.net(outer, nets), inner) {
                    inner_nets.insert(inner, net);
                }
            }
        }
        Ok(inner_nets)
    }

    /// Adds a primitive of an instance.
    fn add_part(
        &mut self,
        cell: &Cell,
        primitive: Primitive,
        instance: usize,
        nets: &mut FxHashMap<usize, usize>,
    ) {
        let mut pins = Vec::new();
        for (pin, bits) in &cell.connections {
            let output = cell
                .port_directions
                .get(pin)
                .is_some_and(|direction| direction == "output");
            for &bit in bits {
                if let Some(net) = self.net(bit, nets) {
                    pins.push(Pin {
                        name: pin.clone(),
                        output,
                        net,
                    });
                }
            }
        }
        self.parts.push(Part {
            primitive,
            kind: cell.kind.clone(),
            instance,
            pins,
            registered: ["DOA_REG", "DOB_REG"]
                .iter()
                .all(|name| cell.parameters.get(*name).is_some_and(is_one)),
        });
    }

    /// Names nets. A net takes a name of the source if it has one: the shortest one in the innermost module.
    fn name_nets(
        &mut self,
        definition: &Module,
        instance: usize,
        nets: &mut FxHashMap<usize, usize>,
    ) {
        for (name, names) in definition
            .netnames
            .iter()
            .filter(|(_, name)| name.hide_name == 0)
        {
            for (index, &bit) in names.bits.iter().enumerate() {
                if let Some(net) = self.net(bit, nets) {
                    let current = &mut self.names[net];
                    let is_better = current.as_ref().is_none_or(|(naming_instance, old)| {
                        *naming_instance == instance
                            && (name.len(), name.as_str()) < (old.len(), old.as_str())
                    });
                    if is_better {
                        let name = match names.bits.len() {
                            1 => name.clone(),
                            _ => format!("{name}[{index}]"),
                        };
                        *current = Some((instance, name));
                    }
                }
            }
        }
    }

    /// Returns the resources of the whole netlist.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        for part in &self.parts {
            size += part.primitive.size;
        }
        size
    }

    /// Returns the resources of each source module, in order of name.
    pub fn modules(&self) -> Vec<ModuleSize> {
        let mut modules: BTreeMap<&str, ModuleSize> = BTreeMap::new();
        for instance in &self.instances {
            let module = modules
                .entry(&instance.module)
                .or_insert_with(|| ModuleSize {
                    module: instance.module.clone(),
                    instances: 0,
                    size: Size::default(),
                });
            module.instances += 1;
        }
        for part in &self.parts {
            if let Some(module) = modules.get_mut(self.instances[part.instance].module.as_str()) {
                module.size += part.primitive.size;
            }
        }
        modules.into_values().collect()
    }
}

/// True if a parameter is 1, as a number or as a string of bits.
fn is_one(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(bits) => bits.trim_start_matches('0') == "1",
        other => other.as_u64() == Some(1),
    }
}

/// Returns the source name of a specialised module: `dcu$synth.u_dcs` is a `dcu`.
fn source_name(module: &str) -> &str {
    module
        .split(['$', '\\'])
        .find(|part| !part.is_empty())
        .unwrap_or(module)
}
