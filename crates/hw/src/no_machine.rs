//! Machines that no function creates, on targets without their measurement loops.

/// Implements `Machine` for types whose field `never` cannot exist.
macro_rules! no_machine {
    ($($name:ident),*) => {$(
        impl lanemark_machine::Machine for $name {
            fn facts(&self) -> &lanemark_machine::Facts {
                match self.never {}
            }
            fn supports(&self, _plan: &lanemark_machine::Plan) -> Result<(), lanemark_machine::Unsupported> {
                match self.never {}
            }
            fn run(
                &mut self,
                _plan: &lanemark_machine::Plan,
                _samples: &mut lanemark_machine::Samples,
            ) -> Result<(), lanemark_machine::MachineError> {
                match self.never {}
            }
        }
    )*};
}

pub(crate) use no_machine;
