use super::*;
use crate::base::Code;

fn policy(text: &str) -> Result<Option<FilterPolicy>> {
    let mut policy = None;
    SettingValue::assign(&mut policy, text).map(|()| policy)
}

#[test]
fn filter_policies_as_rocksdb_writes_them() {
    let bloom = |bits_per_key| Some(FilterPolicy::Bloom { bits_per_key });
    assert_eq!(policy("bloomfilter:10:false").unwrap(), bloom(10.0));
    assert_eq!(policy("bloomfilter:9.5").unwrap(), bloom(9.5));
    assert_eq!(policy("ribbonfilter:10").unwrap(), Some(ribbon(10.0, 0)));
    assert_eq!(policy("ribbonfilter:10:-1").unwrap(), Some(ribbon(10.0, -1)));
    let pairs = "{id=ribbonfilter:10:-1;bloom_before_level=-1;}";
    assert_eq!(policy(pairs).unwrap(), Some(ribbon(10.0, -1)));
    for none in ["", "nullptr", "rocksdb.BuiltinBloomFilter"] {
        assert_eq!(policy(none).unwrap(), None, "{none}");
    }
    for wrong in
        ["bloomfilter", "bloomfilter:x", "bloomfilter:-3", "cuckoo:3", "bloomfilter:10:1:2"]
    {
        assert!(policy(wrong).is_err(), "{wrong}");
    }
    assert!(policy("ribbonfilter:10:x").is_err());
    for (text, code) in [
        ("bloomfilter:x", Code::InvalidArgument),
        ("{id=ribbonfilter:10:x;}", Code::InvalidArgument),
        ("my.Filter", Code::NotSupported),
        ("{id=my.Filter:3;}", Code::NotSupported),
    ] {
        assert_eq!(policy(text).unwrap_err().code(), code, "{text}");
    }
}

#[test]
fn a_printed_policy_reads_back() {
    for text in ["nullptr", "bloomfilter:9.5:false", "ribbonfilter:10:0", "ribbonfilter:12.25:-1"] {
        assert_eq!(policy(text).unwrap().text(), text);
    }
}
