use rustix::io::Errno;

use super::*;

/// They ended in "(os error 13)", and that was all.
#[test]
fn what_the_system_refused_comes_with_what_helps() {
    for (errno, helps) in [
        (Errno::NOENT, "check the path"),
        (Errno::ACCESS, "owner"),
        (Errno::PERM, "owner"),
        (Errno::ROFS, "read-only"),
        (Errno::NOSPC, "Make space"),
        (Errno::DQUOT, "quota"),
        (Errno::FBIG, "ulimit -f"),
        (Errno::MFILE, "ulimit -n"),
        (Errno::IO, "flagstone salvage"),
    ] {
        let failure = Failure::Engine(Error::io("write", "/db/000004.log", errno.into()));
        let said = failure.to_string();
        assert!(said.contains("(/db/000004.log)\n") && said.contains(helps), "{said}");
    }
    let refused = Failure::Stream("write to standard output", Errno::NOSPC.into()).to_string();
    assert!(refused.contains("Make space"), "{refused}");
    assert_eq!(Failure::Engine(Error::not_found("x").at("f")).to_string(), "not found: x (f)");
}

/// Who met damage was told where, and not how to go on.
#[test]
fn damage_comes_with_what_helps_once() {
    let error = Error::corruption("block checksum mismatch").at("000007.sst");
    let said = Failure::Engine(error.clone()).to_string();
    assert!(
        said.starts_with("corruption: block checksum mismatch (000007.sst)\nflagstone verify"),
        "{said}"
    );
    let said = Failure::Engine(error.advise(Remedy::RestoreWal)).to_string();
    assert_eq!(
        said,
        "corruption: block checksum mismatch; restore the WAL from a copy (000007.sst)"
    );
}
