//! Writes the shapes with mixed orders to `litmus/shapes`, and replaces the existing files.

use cohkit_litmus::shape_generator::files;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/shapes");
    for folder in ["aarch64", "c11"] {
        let folder = root.join(folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
    }
    let files = files()?;
    for file in &files {
        std::fs::write(root.join(&file.path), &file.text)?;
    }
    println!("{} files", files.len());
    Ok(())
}
