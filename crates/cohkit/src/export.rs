//! Checked models as files for other checkers: Murphi for Rumur, TLA+ for TLC.

use cohkit_api::files;
use cohkit_api::model_check::input_error;
use cohkit_api::outcome::Failure;
use cohkit_engine::model::Model;
use std::collections::BTreeMap;
use std::path::Path;

/// Folders for exported models, and the modules that have been written.
pub(crate) struct Exports<'a> {
    murphi: Option<&'a Path>,
    tla: Option<&'a Path>,
    /// Names of the written modules, each with the name of its model.
    modules: BTreeMap<String, String>,
}

impl<'a> Exports<'a> {
    /// Creates exports into folders, which are made when a model is written.
    pub fn new(murphi: Option<&'a Path>, tla: Option<&'a Path>) -> Exports<'a> {
        Exports {
            murphi,
            tla,
            modules: BTreeMap::new(),
        }
    }

    /// Writes a model into the folders. `file` is the file that the model comes from, for messages.
    ///
    /// # Errors
    /// A construct that a format does not have, a second module of one name, or a file that cannot be written.
    pub fn write(&mut self, file: &Path, name: &str, model: &Model) -> Result<(), Failure> {
        let reject = |reason: String| input_error(file, &reason);
        if let Some(folder) = self.murphi {
            let text = cohkit_murphi::print(model, cohkit_murphi::Style::Plain).map_err(reject)?;
            files::make_folder(folder)?;
            files::write(&folder.join(format!("{name}.m")), &text)?;
        }
        if let Some(folder) = self.tla {
            let module = cohkit_tla::module_name(name);
            if let Some(other) = self.modules.insert(module.clone(), name.into()) {
                return Err(reject(format!(
                    "`{other}` and `{name}` would both be written as the module `{module}`\n  \
                     help: check them one by one into folders of their own"
                )));
            }
            let export = cohkit_tla::print(model, &module).map_err(reject)?;
            files::make_folder(folder)?;
            files::write(&folder.join(format!("{module}.tla")), &export.module)?;
            files::write(&folder.join(format!("{module}.cfg")), &export.configuration)?;
        }
        Ok(())
    }
}
