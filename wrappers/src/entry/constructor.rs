//! What happens when the loader has loaded libgyan.so? One variable of the environment is looked at. Nothing else,
//! unless `gyan doctor` has set it: then the process notes what it is.

use crate::calls::containment::contain;
use crate::config;
use crate::profile::diagnosis;

ctor::declarative::ctor! {
    // SAFETY: the C library is initialised before what needs it, and what runs here before `main` relies on
    // nothing else.
    #[ctor(unsafe)]
    fn loaded() {
        if let Some(directory) = config::doctor() {
            contain("telling gyan doctor", || diagnosis::begin(&directory));
        }
    }
}
