use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

const WHOLE: &str = include_str!("example.toml");

fn read(text: &str) -> Result<Config> {
    Config::parse(&Document::parse("mcpeval.toml", text, Notation::Toml)?, Path::new("/base"))
}

fn fault(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

fn table(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

#[test]
fn the_whole_of_it_reads() {
    let config = read(WHOLE).unwrap();
    let defaults = &config.defaults;
    assert_eq!(defaults.format.as_deref(), Some("html"));
    assert_eq!((defaults.lanes, defaults.startup_timeout, defaults.price_per_mtok), (Some(8), Some(10), Some(3.0)));
    assert_eq!((defaults.brief, defaults.full, defaults.color.as_deref()), (true, false, Some("never")));
    assert_eq!(defaults.standard.as_deref(), Some(Path::new("/base/acme.toml")));
    assert_eq!(defaults.corpus.as_deref(), Some(Path::new("/data/corpus.json")));
    assert_eq!(defaults.home.as_deref(), Some(Path::new("/base/.mcp-eval")));

    let shop = config.target("shop").unwrap();
    let Reach::Command { program, args, cwd, env } = &shop.reach else { panic!("{shop:?}") };
    assert_eq!((program.as_str(), args.as_slice()), ("node", ["dist/index.js".to_owned()].as_slice()));
    assert_eq!(cwd, Path::new("/base/server"));
    assert_eq!(env, &BTreeMap::from([("LOG".to_owned(), "off".to_owned())]));
    assert_eq!(shop.server.as_str(), "Shop.1");
    assert_eq!(shop.manifest.as_deref(), Some(Path::new("/base/shop.manifest.yaml")));
    assert_eq!(shop.arguments.as_deref(), Some(Path::new("/base/shop.arguments.json")));
    assert_eq!(shop.skip_tools.iter().map(Label::as_str).collect::<Vec<_>>(), ["slow_export"]);
    assert!(shop.confirm_read_only);
    assert_eq!(shop.startup_timeout, Some(60));

    let cloud = config.target("cloud").unwrap();
    assert_eq!(cloud.server.as_str(), "cloud", "a target is called by its name");
    let Reach::Url { url, headers_env } = &cloud.reach else { panic!("{cloud:?}") };
    assert_eq!(url, "https://mcp.example.com/mcp");
    assert_eq!(headers_env["Authorization"], "SHOP_TOKEN");
    assert_eq!(config.header_variables().collect::<Vec<_>>(), ["SHOP_TOKEN"]);

    let component = &config.components["acme.license-check"];
    assert_eq!(component.path, Path::new("/base/probes/license_check.wasm"));
    assert_eq!(component.sha256, Digest([0xab; 32]));
    assert_eq!(config.granted(Digest([0xab; 32])).collect::<Vec<_>>(), [Power::Pipe, Power::Http]);
    assert_eq!(config.granted(Digest([0; 32])).count(), 0, "powers are granted to bytes, not to a name");

    let fixtures = &config.fixtures;
    assert_eq!(fixtures.dir.as_deref(), Some(Path::new("/base/evals")));
    assert_eq!(fixtures.db.as_deref(), Some(Path::new("/base/.mcp/evals.db")));
    assert_eq!((fixtures.timeout, fixtures.concurrency), (Some(30_000), Some(1)));
    assert_eq!(fixtures.library_dirs, [Path::new("/base/shared")]);
}

#[test]
fn nothing_says_nothing() {
    assert_eq!(read("").unwrap(), Config::default());
    assert_eq!(read("[defaults]\n[targets]\n[components]\n[fixtures]\n").unwrap(), Config::default());
}

#[test]
fn a_leading_tilde_is_the_users_folder() {
    let config = read("[fixtures]\ndb = \"~/evals.db\"\ndir = \"~evals\"\n").unwrap();
    assert_eq!(config.fixtures.db, std::env::home_dir().map(|home| home.join("evals.db")));
    assert_eq!(config.fixtures.dir.as_deref(), Some(Path::new("/base/~evals")));
}

#[test]
fn mistakes_are_told_with_place_and_nearest_key() {
    let pin = "sha256 = \"zz\"";
    for (text, words) in [
        ("[default]\n", "mcpeval.toml:1:2: /default: unknown field; the nearest is \"defaults\""),
        ("[defaults]\nlane = 3\n", "mcpeval.toml:2:1: /defaults/lane: unknown field; the nearest is \"lanes\""),
        ("[defaults]\nlanes = 17\n", ":2:1: /defaults/lanes: must be an integer from 1 to 16"),
        ("[defaults]\nlanes = \"4\"\n", "must be an integer from 1 to 16"),
        ("[defaults]\nbrief = 1\n", "/defaults/brief: must be true or false"),
        (
            "[defaults]\nformat = \"jsno\"\n",
            "must be one of text, json, markdown, sarif, junit, html; the nearest is \"json\"",
        ),
        ("[defaults]\ncolor = \"blue\"\n", "/defaults/color: must be one of auto, always, never"),
        ("[defaults]\nprice_per_mtok = -1\n", "/defaults/price_per_mtok: must be a number of at least 0"),
        ("[defaults]\nstartup_timeout = 301\n", "must be an integer from 1 to 300"),
        ("[defaults]\nhome = \"\"\n", "/defaults/home: must be a path"),
        ("defaults = 3\n", ":1:1: /defaults: must be an object"),
        ("[targets.\"a b\"]\nurl = \"http://127.0.0.1/\"\n", "the name of a target must be 1 to 128 of A-Z"),
        ("[targets.a]\n", ":1:10: /targets/a: the target has neither \"command\" nor \"url\""),
        (
            "[targets.a]\ncommand = [\"a\"]\nurl = \"b\"\n",
            ":3:1: /targets/a/url: a target has a command or a url, not both",
        ),
        ("[targets.a]\ncommand = []\n", "/targets/a/command: must begin with a program"),
        ("[targets.a]\ncommand = \"node a.js\"\n", "/targets/a/command: must be an array"),
        ("[targets.a]\ncommand = [\"node\", 3]\n", ":2:20: /targets/a/command/1: must be a string"),
        ("[targets.a]\nurl = \"b\"\nenv = { A = \"b\" }\n", "/targets/a/env: belongs to a target with a command"),
        ("[targets.a]\nurl = \"b\"\ncwd = \"b\"\n", "/targets/a/cwd: belongs to a target with a command"),
        (
            "[targets.a]\ncommand = [\"a\"]\nheaders_env = {}\n",
            "/targets/a/headers_env: belongs to a target with a url",
        ),
        ("[targets.a]\ncommand = [\"a\"]\nenv = { \"A=\" = \"b\" }\n", "its key is not the name of a variable"),
        ("[targets.a]\nurl = \"b\"\nheaders_env = { \"a:\" = \"B\" }\n", "its key is not the name of a header"),
        (
            "[targets.a]\nurl = \"b\"\nheaders_env = { X = \"A\", x = \"B\" }\n",
            "/headers_env/x: the header stands twice",
        ),
        ("[targets.a]\nurl = \"b\"\nheaders_env = { X = \"\" }\n", "/headers_env/X: must be the name of a variable"),
        ("[targets.a]\ncommand = [\"a\"]\nskip_tools = [\"a b\"]\n", "/targets/a/skip_tools/0: must be 1 to 128 of"),
        ("[targets.a]\ncommand = [\"a\"]\nallow_mutation = true\n", "/targets/a/allow_mutation: unknown field"),
        ("[targets.a]\nurl = \"b\"\nallow_remote_http = true\n", "/targets/a/allow_remote_http: unknown field"),
        ("[targets.a]\nurl = \"b\"\nheaders = { X = \"s3cret\" }\n", "unknown field; the nearest is \"headers_env\""),
        ("[components.license]\n", ":1:13: /components/license: a kind of your own is <vendor>.<name>"),
        ("[components.\"a.b\"]\npath = \"c\"\n", "/components/a.b: the field \"sha256\" is missing"),
        (
            &format!("[components.\"a.b\"]\npath = \"c\"\n{pin}\n"),
            "/components/a.b/sha256: must be 64 hexadecimal digits",
        ),
        ("[fixtures]\nconcurrency = 65\n", "must be an integer from 1 to 64"),
        ("[fixtures]\ntimeout = 0\n", "must be an integer from 1 to 600000"),
        ("[targets.a]\n[targets.a]\n", "mcpeval.toml:2:"),
    ] {
        let fault = fault(text);
        assert!(fault.contains(words), "{fault}\nlacks {words}");
        assert!(fault.starts_with("mcpeval.toml:") && !fault.contains("s3cret"), "{fault}");
    }
    let grants = format!("[components.\"a.b\"]\npath = \"c\"\nsha256 = \"{}\"\ngrants = [\"htp\"]\n", "0".repeat(64));
    assert!(fault(&grants).ends_with("must be pipe or http; the nearest is \"http\""), "{}", fault(&grants));
}

#[test]
fn an_unknown_target_is_told_with_those_that_are_known() {
    let words = |text: &str, name: &str| read(text).unwrap().target(name).unwrap_err().to_string();
    assert_eq!(
        words(WHOLE, "shpo"),
        "--target: there is no target \"shpo\"; the nearest is \"shop\"; there are cloud, shop"
    );
    assert_eq!(words(WHOLE, "zzz"), "--target: there is no target \"zzz\"; there are cloud, shop");
    assert!(words("", "shop").contains("no target is configured"));
}

#[test]
fn secrets_of_a_target_are_not_shown() {
    let text = "[targets.a]\ncommand = [\"a\", \"--token=s3cret\"]\nenv = { KEY = \"s3cret\" }\n";
    assert!(!format!("{:?}", read(text).unwrap()).contains("s3cret"));
}

/// The schema of one table, and the keys that the reader takes there.
fn tables() -> [(&'static str, &'static [&'static str]); 5] {
    [
        ("/properties", ROOT),
        ("/$defs/defaults/properties", DEFAULTS),
        ("/$defs/target/properties", TARGET),
        ("/$defs/component/properties", COMPONENT),
        ("/$defs/fixtures/properties", FIXTURES),
    ]
}

#[test]
fn schema_and_reader_know_the_same_keys() {
    let schema = schema::schema();
    for (pointer, keys) in tables() {
        let described: BTreeSet<&str> =
            schema.pointer(pointer).and_then(Value::as_object).unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, keys.iter().copied().collect(), "{pointer}");
    }
    // What the example leaves out, no test would have read.
    let example = table(WHOLE);
    let of = |table: &Value| table.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let mut targets = of(&example["targets"]["shop"]);
    targets.extend(of(&example["targets"]["cloud"]));
    for (keys, used) in [
        (ROOT, of(&example)),
        (DEFAULTS, of(&example["defaults"])),
        (TARGET, targets),
        (COMPONENT, of(&example["components"]["acme.license-check"])),
        (FIXTURES, of(&example["fixtures"])),
    ] {
        assert_eq!(used, keys.iter().map(|key| (*key).to_owned()).collect());
    }
}

#[test]
fn schema_and_reader_judge_alike() {
    let validator = jsonschema::draft202012::new(&schema::schema()).unwrap();
    let whole = table(WHOLE);
    assert!(validator.is_valid(&whole));
    let changes = [
        ("/defaults/format", json!("xml")),
        ("/defaults/lanes", json!(0)),
        ("/defaults/startup_timeout", json!(301)),
        ("/defaults/brief", json!("yes")),
        ("/defaults/full", json!(1)),
        ("/defaults/price_per_mtok", json!(-0.5)),
        ("/defaults/color", json!("red")),
        ("/defaults/standard", json!("")),
        ("/defaults/corpus", json!(3)),
        ("/defaults/home", json!([])),
        ("/targets/shop/command", json!([])),
        ("/targets/shop/command", json!([""])),
        ("/targets/shop/command", json!(["a", 1])),
        ("/targets/shop/cwd", json!("")),
        ("/targets/shop/env", json!({"A=": "b"})),
        ("/targets/shop/env", json!({"A": 1})),
        ("/targets/shop/server", json!("a b")),
        ("/targets/shop/manifest", json!(1)),
        ("/targets/shop/arguments", json!("")),
        ("/targets/shop/skip_tools", json!(["a/b"])),
        ("/targets/shop/confirm_read_only", json!(0)),
        ("/targets/shop/startup_timeout", json!(0)),
        ("/targets/cloud/url", json!(1)),
        ("/targets/cloud/headers_env", json!({"a b": "C"})),
        ("/targets/cloud/headers_env", json!({"A": "b=c"})),
        ("/components/acme.license-check/path", json!("")),
        ("/components/acme.license-check/sha256", json!("ab")),
        ("/components/acme.license-check/grants", json!(["disk"])),
        ("/fixtures/dir", json!("")),
        ("/fixtures/db", json!(1)),
        ("/fixtures/timeout", json!(600_001)),
        ("/fixtures/concurrency", json!(0)),
        ("/fixtures/library_dirs", json!("a")),
    ];
    let mut seen = BTreeSet::new();
    for (pointer, value) in changes {
        seen.insert(pointer);
        let mut broken = whole.clone();
        *broken.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        assert!(!validator.is_valid(&broken), "the schema takes {pointer}");
        assert!(read(&toml::to_string(&broken).unwrap()).is_err(), "the reader takes {pointer}");
    }
    assert_eq!(seen.len(), DEFAULTS.len() + TARGET.len() + COMPONENT.len() + FIXTURES.len(), "each key once");
    for pointer in ["", "/defaults", "/targets/shop", "/components/acme.license-check", "/fixtures"] {
        let mut more = whole.clone();
        more.pointer_mut(pointer).unwrap()["more"] = json!(1);
        assert!(!validator.is_valid(&more) && read(&toml::to_string(&more).unwrap()).is_err(), "{pointer} is closed");
    }
    for (pointer, added) in [
        ("/targets/shop", json!({"url": "http://127.0.0.1/"})),
        ("/targets/shop", json!({"headers_env": {}})),
        ("/targets/cloud", json!({"cwd": "a"})),
        ("/targets/cloud", json!({"env": {}})),
        ("/targets", json!({"a b": {"url": "http://127.0.0.1/"}})),
        ("/components", json!({"plain": whole["components"]["acme.license-check"]})),
    ] {
        let mut more = whole.clone();
        more.pointer_mut(pointer).unwrap().as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
        assert!(!validator.is_valid(&more), "the schema takes {added} in {pointer}");
        assert!(read(&toml::to_string(&more).unwrap()).is_err(), "the reader takes {added} in {pointer}");
    }
}
