//! Hovers and completions: descriptions of the name or the row at a position.

use super::{protocols, start_of, text_in, uri, words, Editor};
use crate::cohkit;
use serde_json::Value;

#[test]
fn hover_on_a_row_shows_its_table_entry() {
    let mut editor = Editor::start_initialised();
    let mut row_count = 0;
    for (file, text) in protocols() {
        let table = cohkit(["table", "--agent", "remote", "--json"])
            .arg(&file)
            .output();
        let table = table.expect("the command starts");
        // Compositions have no table.
        let Ok(table) = serde_json::from_slice::<Value>(&table.stdout) else {
            continue;
        };
        let uri = uri(&file);
        editor.open(&uri, &text);
        for row in table["rows"].as_array().expect("rows") {
            let line = row["line"].as_u64().expect("a line") as usize - 1;
            let line_text = text.lines().nth(line).expect("the text is found");
            let start = line_text.len() - line_text.trim_start().len();
            let hover = editor.request_at("hover", &uri, (line, start));
            let hover = hover["contents"]["value"].as_str().unwrap_or_default();
            let word = |name: &str| row[name].as_str().unwrap_or_default().replace('|', "\\|");
            let actions = row["actions"].as_array().expect("a JSON list").iter();
            let actions: Vec<&str> = actions.filter_map(Value::as_str).collect();
            let cells = [
                "remote".to_string(),
                word("state"),
                word("event"),
                word("guard"),
                actions.join(", ").replace('|', "\\|"),
                word("next"),
            ];
            let cells = format!("| {} |", cells.join(" | "));
            assert!(
                hover.contains(&cells) || hover.contains("\nand "),
                "{uri}:{}: {cells} is not in\n{hover}",
                line + 1
            );
            row_count += usize::from(hover.contains(&cells));
        }
    }
    assert!(row_count > 200, "only {row_count} rows");
    assert_eq!(editor.shut_down(), Some(0));
}

/// Cells of the rows of a Markdown table.
fn rows(table: &str) -> Vec<Vec<String>> {
    let lines = table.lines().filter(|line| line.starts_with("| "));
    let lines = lines.filter(|line| !line.starts_with("| of | "));
    let cells = lines.map(|line| {
        let line = line.replace("\\|", "\u{0}");
        let cells = line.trim_matches('|').split('|');
        let cells = cells.map(|cell| cell.trim().replace('\u{0}', "|"));
        cells.collect()
    });
    cells.collect()
}

#[test]
fn hover_lists_first_rows_and_counts_the_rest() {
    let mut editor = Editor::start_initialised();
    let (mut truncated_count, mut escaped_bars) = (0, 0);
    for (file, text) in protocols() {
        if !(file.ends_with("eci.coh") || file.ends_with("back-invalidate.coh")) {
            continue;
        }
        let table = cohkit(["table", "--json"]).arg(&file).output();
        let table: Value = serde_json::from_slice(&table.expect("the command starts").stdout)
            .expect("the output is JSON");
        let table = table["rows"].as_array().expect("rows");
        let uri = uri(&file);
        editor.open(&uri, &text);
        for (_, position) in words(&text) {
            let hover = editor.request_at("hover", &uri, position);
            let hover = hover["contents"]["value"].as_str().unwrap_or_default();
            for row in rows(hover) {
                assert_eq!(row.len(), 6, "{row:?}");
                escaped_bars += row.iter().filter(|cell| cell.contains('|')).count();
            }
        }
        for (number, line) in text.lines().enumerate() {
            let rows_of_line: Vec<&Value> = (table.iter())
                .filter(|row| row["line"] == number as u64 + 1)
                .collect();
            let start = line.len() - line.trim_start().len();
            if !["on ", "local "].contains(&line[start..].split_inclusive(' ').next().unwrap_or(""))
            {
                continue;
            }
            let hover = editor.request_at("hover", &uri, (number, start));
            let hover = hover["contents"]["value"].as_str().unwrap_or_default();
            let shown_rows = rows(hover);
            let hidden_count = hover.split("\nand ").nth(1);
            let hidden_count = hidden_count.map_or(0, |remainder| {
                remainder
                    .trim_end_matches(" more\n")
                    .parse()
                    .expect("a number")
            });
            assert_eq!(
                shown_rows.len() + hidden_count,
                rows_of_line.len(),
                "{uri}:{}: {hover}",
                number + 1
            );
            assert_eq!(shown_rows.len(), rows_of_line.len().min(12));
            truncated_count += usize::from(hidden_count > 0);
            for (shown, row) in shown_rows.iter().zip(rows_of_line) {
                let word = |name: &str| row[name].as_str().unwrap_or_default();
                assert_eq!(shown[1..4], ["state", "event", "guard"].map(word), "{uri}");
                assert_eq!(shown[5], word("next"));
            }
        }
    }
    assert!(
        truncated_count > 3 && escaped_bars > 0,
        "{truncated_count} {escaped_bars}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn hover_describes_names_and_policies() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let mut transcript = String::new();
    for (word, position) in words(&source) {
        if word == "Get" {
            let hover = editor.request_at("hover", uri, position);
            transcript += hover["contents"]["value"].as_str().unwrap_or("nothing");
            transcript += "\n---\n";
            assert_eq!(start_of(&hover["range"]), position);
            assert_eq!(text_in(&source, &hover["range"]), "Get");
        }
    }
    expect_test::expect![[r#"
        message `Get`, line 17
        ```cohkit
        request: Get
        ```
        ---
        message `Get`, line 17
        ```cohkit
        request: Get
        ```

        | of | state | event | if | actions | next |
        |---|---|---|---|---|---|
        | remote | I | load |  | send Get | IS |

        ---
        message `Get`, line 17
        ```cohkit
        request: Get
        ```

        | of | state | event | if | actions | next |
        |---|---|---|---|---|---|
        | home for one remote, constructed | I | Get |  | read memory | I:Get.rd |
        | home for one remote, constructed | I:Get.rd | memory data |  | send Data | I>S |
        | home for one remote, constructed | I:Get.rd.clean_invalidate | memory data |  | send Data, send Drop | I>S_fI.clean_invalidate |
        | home for one remote, constructed | I>S | Get |  | stall |  |
        | home for one remote, constructed | I>S_fI.clean_invalidate | Get |  | stall |  |
        | home for one remote, constructed | I_fI.clean_invalidate | Get |  | stall |  |

        ---
    "#]].assert_eq(&transcript);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn completion_lists_names_with_their_kind() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let mut transcript = String::new();
    // Positions in the actions of the remote's first row, and in its last cell.
    for cell_start in ["I     | load  | send ", "I     | load  | send Get  | "] {
        let preceding_text =
            &source[..source.find(cell_start).expect("the row is there") + cell_start.len()];
        let line = preceding_text.matches('\n').count();
        let column =
            preceding_text.len() - preceding_text.rfind('\n').map_or(0, |newline| newline + 1);
        transcript += &format!("{cell_start}^\n");
        let completion = editor.request_at("completion", uri, (line, column));
        for item in completion.as_array().expect("a JSON list") {
            let word = |name: &str| item[name].as_str().unwrap_or("?");
            transcript += &format!("{}: {}, {}\n", word("label"), word("detail"), item["kind"]);
        }
    }
    for block in editor.symbols(uri) {
        transcript += &format!("{} {}:", block["name"], block["kind"]);
        for name in block["children"].as_array().expect("a JSON list") {
            transcript += &format!(" {} {}", name["name"], name["kind"]);
        }
        transcript.push('\n');
    }
    expect_test::expect![[r#"
        I     | load  | send ^
        Data: message, 23
        Drop: message, 23
        Get: message, 23
        Gone: message, 23
        None: message, 23
        Put: message, 23
        I     | load  | send Get  | ^
        I: state, 20
        IS: state, 20
        S: state, 20
        stay: ?, 14
        "protocol tiny \"read-only sharing\"" 3:
        "line 64 bytes" 3:
        "channels" 3: "request" 13 "victim" 13 "answer" 13 "forward" 13 "grant" 13
        "messages" 3: "Get" 24 "Put" 24 "Gone" 24 "None" 24 "Drop" 24 "Data" 24
        "remote cache" 3: "cache" 13 "I" 22 "S" 22 "IS" 22
        "home" 3:
        "system alone" 3: "alone" 13
    "#]]
    .assert_eq(&transcript);
    assert_eq!(editor.shut_down(), Some(0));
}
