;; Gives the target back twice.
(func $run (param $target i32) (result i32)
  (call $drop-target (local.get $target))
  (call $drop-target (local.get $target))
  (call $finish))
