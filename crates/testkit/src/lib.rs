//! What the tests of Flagstone share: file systems that crash and fail, a model of the engine,
//! generators.

pub mod auditor;
pub mod balance;
pub mod caught;
pub mod choices;
pub mod compare;
pub mod components;
pub mod crash;
pub mod damage;
pub mod disk;
pub mod encrypted;
pub mod expiring;
pub mod external;
pub mod fakes;
pub mod fault;
pub mod faults;
pub mod full_disk;
pub mod fuzz;
pub mod generate;
mod hand_clock;
pub mod history;
pub mod isolation;
pub mod laboratory;
pub mod model;
pub mod mutants;
pub mod narrow;
pub mod quota;
pub mod referee;
pub mod remote;
pub mod seeds;
pub mod settings;
pub mod steps;
pub mod transactions;

pub use crash::{CrashFs, Survival};
pub use fault::{Call, FaultFs, Injection, Plan, Sort};
pub use generate::Generator;
pub use hand_clock::HandClock;
pub use model::{Edit, Family, Model};
pub use quota::QuotaFs;
pub use referee::Referee;
pub use remote::Workers;
pub use seeds::for_each_seed;
