//! Space on the disk: a quota, or on a small disk a file that takes space until it is needed.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use flagstone::base::Result;
use flagstone::env::Env;
use testkit::QuotaFs;

use crate::plan::{Config, Round};

/// How space is made when the disk is full, and taken away again.
pub enum Room {
    /// There is plenty.
    Ample,
    /// A quota that is lifted.
    Quota { fs: QuotaFs, limit: u64, free: u64 },
    /// A file that is removed.
    Ballast { path: PathBuf, free: u64 },
}

impl Room {
    /// The round's room, and the world in which it is that small.
    pub fn new(config: &Config, round: &Round) -> Result<(Self, Env)> {
        let env = Env::os();
        let free = round.disk_free;
        if let Some(limit) = round.disk_limit {
            let fs = QuotaFs::new(env.fs.clone(), &config.root, limit)?;
            return Ok((Self::Quota { fs: fs.clone(), limit, free }, env.with_fs(Arc::new(fs))));
        }
        Ok(match config.small_disk {
            Some(_) => (Self::Ballast { path: config.ballast(), free }, env),
            None => (Self::Ample, env),
        })
    }

    /// Makes space.
    pub fn relieve(&self) -> io::Result<()> {
        match self {
            Self::Ample => {}
            Self::Quota { fs, limit, .. } => {
                fs.set_limit((*limit).max(fs.used()).saturating_mul(4))
            }
            Self::Ballast { path, .. } => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        Ok(())
    }

    /// Takes away all but a little of the space that is free now.
    pub fn narrow(&self) -> io::Result<()> {
        match self {
            Self::Ample => {}
            Self::Quota { fs, limit, free } => fs.set_limit((*limit).min(fs.used() + free)),
            Self::Ballast { path, free } => {
                let file = fs::File::create(path)?;
                let found = rustix::fs::fstatvfs(&file)?;
                let surplus = (found.f_bavail * found.f_frsize).saturating_sub(*free);
                if surplus > 0 {
                    match rustix::fs::fallocate(
                        &file,
                        rustix::fs::FallocateFlags::empty(),
                        0,
                        surplus,
                    ) {
                        // The database was faster: the disk is as full as it was to be.
                        Ok(()) | Err(rustix::io::Errno::NOSPC) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(())
    }
}
