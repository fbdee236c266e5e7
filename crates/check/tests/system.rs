//! Protocol texts as models.

use cohkit_check::system::{model, Options};
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text::parse;

fn text(name: &str) -> String {
    let path = format!("{}/../../protocols/{name}.coh", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_shipped_system_has_a_model() {
    for name in ["msi", "mesi", "moesi", "msi-policy"] {
        let text = text(name);
        let protocol = match parse(&text) {
            Ok(protocol) => protocol,
            Err(errors) => panic!(
                "{name}: {}",
                errors
                    .iter()
                    .map(|e| e.render(name, &text, false))
                    .collect::<String>()
            ),
        };
        for system in &protocol.systems {
            let home = match &protocol.home {
                Home::Controller(home) => home.clone(),
                Home::Policy(_) => {
                    let construction = construct(&protocol)
                        .map_err(|e| format!("{e:?}").chars().take(300).collect::<String>())
                        .unwrap();
                    if system.remotes == 1 {
                        construction.flat(true)
                    } else {
                        construction.factored(true)
                    }
                }
            };
            let model = model(
                &protocol,
                &home,
                system.remotes,
                system.lines,
                &Options::default(),
            );
            let model = model.unwrap_or_else(|e| panic!("{name} {}: {e}", system.name));
            println!(
                "{name} {}: {} rules, {} variables",
                system.name,
                model.rules.len(),
                model.variables.len()
            );
        }
    }
}
