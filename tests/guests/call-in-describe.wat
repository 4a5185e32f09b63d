;; Calls the host where it may not.
(func $describe (result i32)
  (call $progress (i32.const 1) (i32.const 2))
  (global.get $manifest))
(func $run (param $target i32) (result i32) (call $finish))
