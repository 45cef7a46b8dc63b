//! How gyan gets into a program: installed, preloaded, by `gyan run`, under each launcher.

mod every_job;
mod gyan_run;
mod in_front;
mod in_scripts;
mod install;
mod launchers;
mod machine;
mod obstacles;
mod privacy;
mod slurm;
