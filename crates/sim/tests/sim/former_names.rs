//! Former names of quantities: each leads to a quantity of the simulator, by its file and by `set`.

use cohkit_platform::{current_name, former_name, former_name_warning, FORMER_NAMES};
use cohkit_sim::platform::{text, Platform, Row, TABLE};

/// Valid file with current names.
const TEXT: &str = include_str!("../../../../platforms/enzian-dc-bram.toml");

#[test]
fn every_former_name_leads_to_a_quantity() {
    for (former, current) in FORMER_NAMES {
        let rows: Vec<&Row> = TABLE.iter().filter(|row| row.name == *current).collect();
        assert_eq!(rows.len(), 1, "{current}");
        assert!(TABLE.iter().all(|row| row.name != *former), "{former}");
        let row = Row::named(former).expect("the former name is known");
        assert_eq!(row.name, *current);
        for prefix in [
            "",
            "lower.",
            "host.",
            "agents.device.",
            "host.agents.device.",
        ] {
            let [former, current] = [former, current].map(|name| format!("{prefix}{name}"));
            assert_eq!(current_name(&former), current);
            assert_eq!(current_name(&current), current);
            assert_eq!(former_name(&current), Some(former));
        }
    }
    let mut former_names: Vec<&str> = FORMER_NAMES.iter().map(|(former, _)| *former).collect();
    former_names.sort_unstable();
    former_names.dedup();
    assert_eq!(former_names.len(), FORMER_NAMES.len());
    for name in ["below.cores.used", "below.cores.count", "lower.cores.used"] {
        assert_eq!(current_name(name), "lower.cores.count");
    }
    for name in ["uplink.links", "link.latency", "impatience", "remotes", ""] {
        assert_eq!(current_name(name), name);
        assert_eq!(former_name(name), None);
    }
}

#[test]
fn quantities_are_set_by_their_former_names() {
    let mut platform = Platform::shipped("n1sdp-u280").unwrap();
    for (former, value, current) in [
        ("link.links", "2", "link.count"),
        (
            "agents.device.translation.used",
            "1",
            "agents.device.translation.enabled",
        ),
        ("agents.device.link.links", "3", "agents.device.link.count"),
    ] {
        platform.set(former, value).unwrap();
        let quantities = platform.all_quantities().into_iter();
        let mut values = quantities.filter(|(name, ..)| name == current);
        let (_, unit, quantity) = values.next().expect("the quantity exists");
        assert_eq!(cohkit_units::show(quantity.value, unit), value);
        let warning = former_name_warning(former, current);
        assert!(platform.implausible.contains(&warning), "{warning}");
    }
    let error = platform.set("link.links", "0").unwrap_err();
    assert_eq!(error, "link.count must be 1 to 64, not 0");
}

#[test]
fn platform_files_may_have_former_names() {
    let links = "count = { value = 2, origin = \"CCKit, section 4: two links of 12 lanes\" }";
    assert_eq!(TEXT.matches(links).count(), 1);
    let former_links = links.replacen("count", "links", 1);
    let platform = text::read(&TEXT.replace(links, &former_links)).unwrap();
    assert_eq!(platform.link.count.value, 2);
    let warning = former_name_warning("link.links", "link.count");
    assert_eq!(platform.implausible, [warning]);
}

#[test]
fn a_file_with_both_names_of_a_quantity_is_rejected() {
    let links = "count = { value = 2, origin = \"CCKit, section 4: two links of 12 lanes\" }";
    let former_links = links.replacen("count", "links", 1);
    let both = TEXT.replace(links, &format!("{links}\n{former_links}"));
    let errors = text::read(&both).unwrap_err();
    let messages: Vec<&str> = errors.iter().map(|error| &error.message[..]).collect();
    assert_eq!(
        messages,
        ["`link.links` is the former name of `link.count`, which is given, too: remove one of them"]
    );
}

#[test]
fn lower_levels_may_have_their_former_name() {
    let text = include_str!("../../../../platforms/clusters-4x4.toml");
    let former = text.replace("[lower", "[below");
    let platform = text::read(&former).unwrap();
    let shipped = Platform::shipped("clusters-4x4").unwrap();
    assert_eq!(platform.all_quantities(), shipped.all_quantities());
    assert_eq!(
        platform.implausible,
        [former_name_warning("below", "lower")]
    );
    let both = format!("{text}\n[below]\nremotes = 4\n");
    let errors = text::read(&both).unwrap_err();
    let messages: Vec<&str> = errors.iter().map(|error| &error.message[..]).collect();
    let expected = "`below` is the former name of `lower`, which is given, too: remove one of them";
    assert_eq!(messages, [expected]);
}
