//! Results of commands, which are JSON, as one CSV table or as statistics in gem5's format.

use cohkit_sim::statistics::Definition;
use serde_json::{Map, Value};

/// Keys of the lists that are a command's main result.
const MAIN_LISTS: [&str; 3] = ["rows", "quantities", "tools"];

/// Keys that name the members of lists.
const NAME_KEYS: [&str; 2] = ["name", "operation"];

/// Converts results to CSV, with a row per result. A column is a value that occurs in any result, named by its keys
/// from the outside in, joined by dots. Values that depend on the machine are left out.
///
/// A list of plain values is one cell. A list of named members gives columns by their names. Other lists, such as the
/// steps of a counterexample, are left out.
pub(crate) fn table(value: &Value) -> String {
    let rows: Vec<Vec<(String, String)>> = results(value).iter().map(cells).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = line(columns.iter().copied());
    for row in &rows {
        let cell = |column: &&str| {
            let found_cell = row.iter().find(|(name, _)| name == column);
            found_cell.map_or("", |(_, cell)| cell.as_str())
        };
        text += &line(columns.iter().map(cell));
    }
    text
}

/// Converts results to gem5's `stats.txt`, with a block per result. Numbers have the names of the columns of [`table`],
/// with `_` for characters that would end a name, and their text of `definitions` after `#`. Text values come first, as
/// comments.
pub(crate) fn statistics(value: &Value, definitions: &[Definition]) -> String {
    let mut text = String::new();
    for result in results(value) {
        text += "\n---------- Begin Simulation Statistics ----------\n";
        let (numbers, words): (Vec<_>, Vec<_>) = (cells(&result).into_iter())
            .filter(|(_, cell)| !cell.is_empty())
            .partition(|(_, cell)| {
                // Words such as `inf` also parse as numbers.
                let starts_like_number =
                    cell.starts_with(|sign: char| sign == '-' || sign.is_ascii_digit());
                starts_like_number && cell.parse::<f64>().is_ok()
            });
        for (name, cell) in words {
            text += &format!("# {name}: {}\n", cell.replace(['\n', '\r'], " "));
        }
        for (name, cell) in numbers {
            let ends_name = |sign: char| sign.is_whitespace() || sign == '#';
            text += &format!("{:<56} {cell:>20}", name.replace(ends_name, "_"));
            let definition_name = name.rsplit_once("statistics.").map_or("", |(_, name)| name);
            match definitions
                .iter()
                .find(|definition| definition.name == definition_name)
            {
                Some(definition) => text += &format!(" # {}\n", definition.text),
                None => text.push('\n'),
            }
        }
        text += "---------- End Simulation Statistics   ----------\n";
    }
    text
}

/// Returns the objects that become a row each: the members of a list, those of a result's main list, or the result
/// itself. If all values are lists of objects, each object is a row, with its list's key in the column `kind`.
fn results(value: &Value) -> Vec<Map<String, Value>> {
    let objects = |list: &[Value]| -> Option<Vec<Map<String, Value>>> {
        list.iter().map(|item| item.as_object().cloned()).collect()
    };
    match value {
        Value::Array(list) => objects(list).unwrap_or_default(),
        Value::Object(object) => {
            let main_list = MAIN_LISTS
                .iter()
                .find_map(|name| object.get(*name)?.as_array());
            if let Some(rows) = main_list.and_then(|list| objects(list)) {
                return rows;
            }
            // Lists of shipped items by kind: the kind becomes a column.
            let lists_by_kind = object.iter().map(|(key, list)| {
                let mut items = objects(list.as_array()?)?;
                for item in &mut items {
                    item.insert("kind".into(), key.as_str().into());
                }
                Some(items)
            });
            match lists_by_kind.collect::<Option<Vec<_>>>() {
                Some(lists_by_kind) => lists_by_kind.concat(),
                None => vec![object.clone()],
            }
        }
        _ => Vec::new(),
    }
}

/// Returns the cells of one result with the names of their columns, without the machine-dependent key `run`.
fn cells(result: &Map<String, Value>) -> Vec<(String, String)> {
    let mut cells = Vec::new();
    for (key, value) in result.iter().filter(|(key, _)| *key != "run") {
        add_cells(key, value, &mut cells);
    }
    cells
}

/// Adds the cells of one value. `name` is the path of keys to it, joined by dots.
fn add_cells(name: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                add_cells(&format!("{name}.{key}"), value, cells);
            }
        }
        Value::Array(list) => match list.iter().map(plain_cell).collect::<Option<Vec<String>>>() {
            Some(items) => cells.push((name.into(), items.join("; "))),
            None => add_named_columns(name, list, cells),
        },
        _ => cells.extend(plain_cell(value).map(|cell| (name.into(), cell))),
    }
}

/// Adds columns for a list whose members have names; repeated names are numbered.
fn add_named_columns(name: &str, list: &[Value], cells: &mut Vec<(String, String)>) {
    let name_of = |item: &Value| {
        NAME_KEYS
            .iter()
            .find_map(|key| Some(item[key].as_str()?.to_string()))
    };
    let names: Option<Vec<String>> = list.iter().map(name_of).collect();
    let Some(names) = names else { return };
    for (index, (item, item_name)) in list.iter().zip(&names).enumerate() {
        let repeats = names[..index]
            .iter()
            .filter(|other| *other == item_name)
            .count();
        let item_name = match repeats {
            0 => item_name.clone(),
            _ => format!("{item_name} {}", repeats + 1),
        };
        let fields = item.as_object().into_iter().flatten();
        for (key, value) in fields.filter(|(key, _)| !NAME_KEYS.contains(&key.as_str())) {
            add_cells(&format!("{name}.{item_name}.{key}"), value, cells);
        }
    }
}

/// Cell for a value that is neither list nor object; empty for null.
fn plain_cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A line of CSV: cells separated by commas, quoted where necessary (RFC 4180, but without carriage returns).
fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let quoted = cells.map(|cell| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_string(),
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::{statistics, table, Definition};
    use serde_json::json;

    #[test]
    fn results_are_rows_and_fields_are_columns() {
        let value = json!([
            { "a": { "b": 1, "c": null }, "notes": ["x", "y, \"z\""], "run": { "seconds": 1.5 } },
            { "a": { "b": 2.5 }, "ends": [{ "values": 3 }], "more": true },
        ]);
        assert_eq!(
            table(&value),
            "a.b,a.c,notes,more\n1,,\"x; y, \"\"z\"\"\",\n2.5,,,true\n"
        );
    }

    #[test]
    fn named_list_items_become_columns() {
        let value = json!({ "p": [{ "name": "up", "n": 1 }, { "name": "down", "n": 2 }] , "q": 0 });
        assert_eq!(table(&value), "p.up.n,p.down.n,q\n1,2,0\n");
        let value =
            json!({ "p": [{ "operation": "up", "n": 1 }, { "operation": "up", "n": 2 }] , "q": 0 });
        assert_eq!(table(&value), "p.up.n,p.up 2.n,q\n1,2,0\n");
    }

    #[test]
    fn nested_lists_become_rows() {
        let value = json!({ "agent": "home", "rows": [{ "event": "load" }, { "event": "store" }] });
        assert_eq!(table(&value), "event\nload\nstore\n");
        let value = json!({ "x": [{ "name": "a" }], "y": [{ "name": "b" }] });
        assert_eq!(table(&value), "kind,name\nx,a\ny,b\n");
    }

    #[test]
    fn statistics_are_the_numbers_of_each_result() {
        let value = json!([
            { "a": { "b c": 1, "statistics": { "n": 4 }, "d": "340282366920938463463374607431768211456" }, "e": "f\ng", "run": { "h": 2 } },
            { "a": { "b c": -2.5e-3 }, "i": null, "j": [1, 2] },
        ]);
        let definition = Definition {
            name: "n",
            text: "how many",
        };
        let text = statistics(&value, &[definition]);
        let lines: Vec<Vec<&str>> = (text.lines())
            .map(|line| line.split_whitespace().collect())
            .collect();
        let begin = vec![
            "----------",
            "Begin",
            "Simulation",
            "Statistics",
            "----------",
        ];
        let end = vec![
            "----------",
            "End",
            "Simulation",
            "Statistics",
            "----------",
        ];
        let expected: [Vec<&str>; 12] = [
            vec![],
            begin.clone(),
            vec!["#", "e:", "f", "g"],
            vec!["a.b_c", "1"],
            vec!["a.d", "340282366920938463463374607431768211456"],
            vec!["a.statistics.n", "4", "#", "how", "many"],
            end.clone(),
            vec![],
            begin,
            vec!["#", "j:", "1;", "2"],
            vec!["a.b_c", "-0.0025"],
            end,
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn empty_results_give_an_empty_table() {
        assert_eq!(table(&json!([])), "\n");
    }
}
