import evenfeed as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy()

dataset = tf.data.Dataset.from_tensor_slices([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).batch(4)
for step in strategy.experimental_distribute_dataset(dataset):
    print(step)
