//! Which threads may do what.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{bytes, data, fails, numbers};
use rushlight::{
    Adapter, Canceller, Code, Grammar, LanguageModel, Module, ModuleOptions, Outputs, Session,
    Tensor, TensorView, Texts,
};

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn marks_are_those_of_the_rules() {
    is_send::<Module>();
    is_send::<Session>();
    is_send::<Texts<'_>>();
    is_send::<LanguageModel>();
    is_sync::<LanguageModel>();
    is_send::<Canceller>();
    is_sync::<Canceller>();
    is_sync::<Grammar>();
    is_sync::<Adapter>();
    is_send::<TensorView<'_>>();
    is_sync::<TensorView<'_>>();
    is_send::<Tensor>();
    is_sync::<Tensor>();
    let _: Option<Outputs<'_>> = None;
}

#[test]
fn clones_run_at_once() {
    let module = Module::open(data("net_cpu.pte")).unwrap();
    let (x, mask) = (numbers::<f32>("x_9.bin"), numbers::<f32>("mask_9.bin"));
    let wanted = bytes("cpu_9_0.bin");
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut copy = module.try_clone().unwrap();
            let (x, mask, wanted) = (&x, &mask, &wanted);
            scope.spawn(move || {
                for _ in 0..50 {
                    let inputs = [
                        TensorView::new(x, &[9, 6]).unwrap().into(),
                        TensorView::new(mask, &[9]).unwrap().into(),
                    ];
                    let outputs = copy.run("forward", &inputs).unwrap();
                    assert_eq!(outputs.tensor(0).unwrap().to_tensor().unwrap().as_bytes(), wanted);
                }
            });
        }
    });
}

#[test]
fn a_run_is_cancelled_by_another_thread() {
    let options = ModuleOptions { max_instructions: 10_000_000_000, ..Default::default() };
    let mut module = Module::open_with(data("loop.pte"), &options).unwrap();
    module.load("forward").unwrap();
    let canceller = module.canceller();
    canceller.cancel().unwrap(); // of no run: nothing
    let is_over = AtomicBool::new(false);
    let x = Tensor::new(&[0.0_f32; 2], &[2]).unwrap();
    thread::scope(|scope| {
        let other = canceller.clone();
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                other.cancel().unwrap();
                thread::yield_now();
            }
        });
        let result = module.run("forward", &[(&x).into()]).map(|_| ());
        is_over.store(true, Ordering::Relaxed);
        let error = fails(result, Code::Cancelled, "the run was cancelled");
        assert!(error.instruction().is_some() && error.delegate().is_none());
    });
    drop(module);
    fails(canceller.cancel(), Code::InvalidState, "not open");
}
