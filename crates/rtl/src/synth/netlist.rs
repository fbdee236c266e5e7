//! A mapped netlist as Yosys writes it (`write_json`), made flat, and its size by module.

use super::primitives::Primitive;
pub use super::size::Size;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct File {
    modules: BTreeMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    attributes: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    ports: BTreeMap<String, Port>,
    #[serde(default)]
    cells: BTreeMap<String, Cell>,
    #[serde(default)]
    netnames: BTreeMap<String, Name>,
}

#[derive(Deserialize)]
struct Port {
    direction: String,
    bits: Vec<Bit>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    port_directions: BTreeMap<String, String>,
    connections: BTreeMap<String, Vec<Bit>>,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    hide_name: u8,
    bits: Vec<Bit>,
}

/// A net of its module, or a constant.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Bit {
    Net(usize),
    Constant(#[allow(dead_code)] Constant),
}

#[derive(Deserialize, Clone, Copy)]
enum Constant {
    #[serde(rename = "0")]
    Low,
    #[serde(rename = "1")]
    High,
    #[serde(rename = "x")]
    Unknown,
    #[serde(rename = "z")]
    Open,
}

/// A pin of a primitive, and the net at it.
pub(super) struct Pin {
    pub name: String,
    pub output: bool,
    pub net: usize,
}

/// A primitive of the flat netlist.
pub(super) struct Part {
    pub primitive: Primitive,
    /// The type's name.
    pub kind: String,
    /// The instance it is in.
    pub instance: usize,
    pub pins: Vec<Pin>,
    /// It is a memory block whose outputs have a register.
    pub registered: bool,
}

/// A module's instance.
pub(super) struct Instance {
    /// Where it is, such as `u_dcs.gen_unit[0].u_dcu`; empty for the top.
    pub path: String,
    /// The name of its module in the source.
    pub module: String,
}

/// A module of the source: how often it is there, and what all of its instances take, without those of other modules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleSize {
    /// Its name.
    pub module: String,
    /// How often it is there.
    pub instances: u64,
    /// What all of them take.
    pub size: Size,
}

/// A netlist without hierarchy.
pub struct Netlist {
    pub(super) parts: Vec<Part>,
    pub(super) instances: Vec<Instance>,
    /// For each net the best name it has, and the instance where it has it.
    pub(super) names: Vec<Option<(usize, String)>>,
    /// Nets at the top's ports: those that come in, and those that go out.
    pub(super) inputs: Vec<(usize, String)>,
    pub(super) outputs: Vec<(usize, String)>,
}

impl Netlist {
    /// Reads a netlist and makes it flat.
    ///
    /// # Errors
    /// If the text is not such a netlist, has no module of this name, or a primitive that is not known.
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

    /// The number of a net of a module's instance; `None` for a constant.
    fn net(&mut self, bit: Bit, nets: &mut FxHashMap<usize, usize>) -> Option<usize> {
        match bit {
            Bit::Net(own) => Some(*nets.entry(own).or_insert_with(|| {
                self.names.push(None);
                self.names.len() - 1
            })),
            Bit::Constant(_) => None,
        }
    }

    fn add(
        &mut self,
        file: &File,
        module: &str,
        path: String,
        mut nets: FxHashMap<usize, usize>,
    ) -> Result<(), String> {
        let own = &file.modules[module];
        let instance = self.instances.len();
        self.instances.push(Instance {
            path: path.clone(),
            module: source_name(module).to_string(),
        });
        for (name, cell) in &own.cells {
            // It says where a module stood that was made flat.
            if cell.kind == "$scopeinfo" {
                continue;
            }
            let known = file.modules.get(&cell.kind);
            match known.filter(|module| !module.attributes.contains_key("blackbox")) {
                Some(inner) => {
                    let mut inside = FxHashMap::default();
                    for (port, bits) in &cell.connections {
                        let inner = inner.ports.get(port).ok_or_else(|| {
                            format!("`{name}` connects `{port}`, which `{}` has not", cell.kind)
                        })?;
                        for (&outer, &inner) in bits.iter().zip(&inner.bits) {
                            if let (Some(net), Bit::Net(inner)) =
                                (self.net(outer, &mut nets), inner)
                            {
                                inside.insert(inner, net);
                            }
                        }
                    }
                    let path = match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}.{name}"),
                    };
                    self.add(file, &cell.kind, path, inside)?;
                }
                None => {
                    let primitive = Primitive::named(&cell.kind).ok_or_else(|| {
                        format!(
                            "`{}` is not a primitive that is known here (cell `{name}` of `{module}`)",
                            cell.kind
                        )
                    })?;
                    let mut pins = Vec::new();
                    for (pin, bits) in &cell.connections {
                        let output = cell
                            .port_directions
                            .get(pin)
                            .is_some_and(|direction| direction == "output");
                        for &bit in bits {
                            if let Some(net) = self.net(bit, &mut nets) {
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
            }
        }
        // A net is called by a name of the source if it has one, the shortest in the innermost module.
        for (name, names) in own.netnames.iter().filter(|(_, name)| name.hide_name == 0) {
            for (index, &bit) in names.bits.iter().enumerate() {
                if let Some(net) = self.net(bit, &mut nets) {
                    let named = &mut self.names[net];
                    let better = named.as_ref().is_none_or(|(at, old)| {
                        *at == instance && (name.len(), name.as_str()) < (old.len(), old.as_str())
                    });
                    if better {
                        let name = match names.bits.len() {
                            1 => name.clone(),
                            _ => format!("{name}[{index}]"),
                        };
                        *named = Some((instance, name));
                    }
                }
            }
        }
        Ok(())
    }

    /// What all of it takes.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        for part in &self.parts {
            size += part.primitive.size;
        }
        size
    }

    /// What each module of the source takes, by name.
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

/// A parameter that is 1, as a number or as the text of its bits.
fn is_one(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(bits) => bits.trim_start_matches('0') == "1",
        other => other.as_u64() == Some(1),
    }
}

/// The source's name of a module that was made for one instance: `dcu$synth.u_dcs` is a `dcu`.
fn source_name(module: &str) -> &str {
    module
        .split(['$', '\\'])
        .find(|part| !part.is_empty())
        .unwrap_or(module)
}
