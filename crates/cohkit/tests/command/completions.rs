//! Tests of `cohkit completions`.

use crate::{cohkit, text};
use std::process::Command;

/// Completion script for a shell.
fn script(shell: &str) -> String {
    let output = cohkit(["completions", shell])
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn bash_completes_commands_options_and_their_values() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("cohkit");
    std::fs::write(&file, script("bash")).expect("a script is written");
    let completions = |words: &str| -> Vec<String> {
        // Arguments of bash's call: the command, the current word, and the word before it.
        let script_line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
            _cohkit cohkit \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script_line])
            .output()
            .expect("bash starts");
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        let words = text(&output.stdout);
        words.split_whitespace().map(String::from).collect()
    };
    assert_eq!(completions("cohkit c"), ["check", "completions"]);
    assert_eq!(completions("cohkit rtl me"), ["measure"]);
    assert_eq!(completions("cohkit check --sym"), ["--symmetry"]);
    assert_eq!(completions("cohkit check --symmetry o"), ["off"]);
    assert_eq!(
        completions("cohkit completions ''"),
        ["-h", "--help", "bash", "zsh", "fish"]
    );
}

#[test]
fn completions_cover_every_command_and_option() {
    let help = |arguments: &[&str]| {
        let output = cohkit(arguments)
            .arg("--help")
            .output()
            .expect("the command starts");
        text(&output.stdout)
    };
    let commands = help(&[]);
    let commands = commands.split("Commands:\n").nth(1).expect("commands");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(commands.contains(&"check") && commands.contains(&"sweep"));
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
            // Options of these commands are defined in Python, or in subcommands.
            if ["help", "reproduce", "sweep", "report", "explore", "rtl"].contains(command) {
                continue;
            }
            let help = help(&[command]);
            let options = help.lines().filter(|line| line.starts_with("  "));
            let options = options.filter_map(|line| {
                let option_text = line.trim_start();
                let option_text = option_text
                    .split_whitespace()
                    .find(|word| word.starts_with("--"));
                (line.trim_start().starts_with('-')).then_some(option_text?)
            });
            for option in options {
                let option = option.trim_matches(|character: char| {
                    character != '-' && !character.is_alphanumeric()
                });
                let spelling = match shell {
                    "fish" => format!("-l {}", option.trim_start_matches('-')),
                    _ => option.to_string(),
                };
                assert!(script.contains(&spelling), "{shell}: {command} {spelling}");
            }
        }
    }
}
