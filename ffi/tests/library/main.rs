//! The built library, as C programs see it: what it exports, and every program of `tests/c`.
//!
//! By default the library is built as the other tests are, with debug assertions. `TOLLGATE_LIBRARY_DIR` names the folder
//! of another build, `TOLLGATE_LIBRARY_FEATURES` its features: `std`, `heap`, `shards`, `shm`, in this order.

mod abi;
mod cc;
#[expect(dead_code, reason = "other tests ask it more")]
#[path = "../../../tests/contract/oracle.rs"]
mod oracle;
mod programs;
mod traces;
