//! A device that shows whether its caller is right. It takes every call at once, with stand-ins for arithmetic, and
//! checks that the caller has put in order whatever a device with two queues would do at the same time. So what comes
//! out is what comes out of any device, whatever it does first; and whether it is right shows where the same work comes
//! from another device.

mod arithmetic;
mod backend;
mod memory;
mod order;

pub use backend::{Journal, Recording};
